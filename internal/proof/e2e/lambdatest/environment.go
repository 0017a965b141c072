package lambdatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// environment is one execution environment: a process and the endpoint that it talks to.
type environment struct {
	options *Options
	output  *logBuffer

	began    time.Time
	initTook time.Duration
	asked    chan struct{} // one value for each request for an event
	events   chan delivery // what such a request is answered with
	answers  chan message  // what the program posts
	exited   chan struct{} // closed when the process has ended
	ended    chan struct{} // closed by stop: requests under way end
	stopOnce sync.Once

	mu      sync.Mutex
	current string         // the request id under way
	server  *http.Server   // nil before start
	command *exec.Cmd      // nil before start, its process after it
	served  sync.WaitGroup // the endpoint's goroutine
}

type delivery struct {
	request  string
	event    []byte
	deadline time.Time
}

// message is a post of the program: a response, an error, or an error of its start.
type message struct {
	kind string
	body []byte
}

func newEnvironment(options *Options, output *logBuffer) *environment {
	return &environment{
		options: options,
		output:  output,
		asked:   make(chan struct{}, 1),
		events:  make(chan delivery),
		answers: make(chan message, 1),
		exited:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
}

var errStopped = errors.New("the environment was stopped before it started")

// start runs the endpoint and the process. Both end with stop.
func (e *environment) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.ended:
		return errStopped
	default:
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.server = &http.Server{Handler: e.routes(), ReadHeaderTimeout: time.Minute}
	e.served.Go(func() { _ = e.server.Serve(listener) }) // ends with the server
	command := exec.Command(e.options.Program)           //nolint:noctx // it ends with stop, not with an invocation
	command.Env = append(
		append([]string{"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand"}, e.options.Environment...),
		"AWS_LAMBDA_RUNTIME_API="+listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME="+e.options.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
		"AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_LAMBDA_LOG_LEVEL=INFO",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/"+e.options.Name,
		"_HANDLER=bootstrap", "LAMBDA_TASK_ROOT=.", "TZ=:UTC",
	)
	command.Stdout, command.Stderr = e.output, e.output
	e.began = time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	e.command = command
	go func() { // ends with the process
		defer close(e.exited)
		_ = command.Wait()
	}()
	return nil
}

// awaitInit returns nil when the process asks for its first event, else what went wrong.
func (e *environment) awaitInit(ctx context.Context) *Answer {
	timer := time.NewTimer(e.options.InitTimeout)
	defer timer.Stop()
	select {
	case <-e.asked:
		e.asked <- struct{}{} // it still stands
		return nil
	case m := <-e.answers:
		return &Answer{Failure: FailureInit, Payload: m.body}
	case <-e.exited:
		return &Answer{Failure: FailureExit, Payload: []byte(e.end())}
	case <-timer.C:
		return &Answer{
			Failure: FailureTimeout,
			Payload: []byte("the program asked for no event within " + e.options.InitTimeout.String()),
		}
	case <-ctx.Done():
		return &Answer{Failure: FailureTimeout, Payload: []byte(ctx.Err().Error())}
	}
}

// invoke hands over one event. It returns when the program has answered and asks for the next one: what it does in
// between counts, as on Lambda.
func (e *environment) invoke(ctx context.Context, request string, event []byte) *Answer {
	began := time.Now()
	deadline := began.Add(e.options.Timeout)
	timer := time.NewTimer(e.options.Timeout)
	defer timer.Stop()
	e.mu.Lock()
	e.current = request
	e.mu.Unlock()
	a := &Answer{}
	over := func(failure, text string) *Answer {
		a.Took = time.Since(began)
		if a.Failure == "" && a.Payload == nil {
			a.Failure, a.Payload = failure, []byte(text)
		}
		return a
	}
	// The process has asked for this event. Its word is taken first: the next one is then about the next event, however
	// fast it comes.
	select {
	case <-e.asked:
	case <-e.exited:
		return over(FailureExit, e.end())
	}
	events := e.events
	var asked chan struct{} // nil until it has answered
	for {
		select {
		case <-asked:
			e.asked <- struct{}{} // it still stands
			return over("", "")
		case events <- delivery{request, event, deadline}:
			events = nil
		case m := <-e.answers:
			asked = e.asked
			a.Payload = m.body
			if m.kind != "response" {
				a.Failure = FailureUnhandled
			}
		case <-e.exited:
			return over(FailureExit, e.end())
		case <-timer.C:
			return over(
				FailureTimeout,
				fmt.Sprintf("%s Task timed out after %.2f seconds", request, e.options.Timeout.Seconds()),
			)
		case <-ctx.Done():
			return over(FailureTimeout, ctx.Err().Error())
		}
	}
}

// end says how the process ended, once it has.
func (e *environment) end() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.command.ProcessState.String()
}

// routes are those of the Runtime API that a runtime has to use.
func (e *environment) routes() http.Handler {
	mux := http.NewServeMux()
	const root = "/2018-06-01/runtime"
	mux.HandleFunc("GET "+root+"/invocation/next", e.next)
	mux.HandleFunc("POST "+root+"/invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		e.answer(w, r, "response")
	})
	mux.HandleFunc("POST "+root+"/invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		e.answer(w, r, "error")
	})
	mux.HandleFunc("POST "+root+"/init/error", func(w http.ResponseWriter, r *http.Request) { e.post(w, r, "init") })
	return mux
}

// next blocks until there is an event, for ever if need be.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if e.initTook == 0 {
		e.initTook = time.Since(e.began)
	}
	e.mu.Unlock()
	select {
	case e.asked <- struct{}{}:
	case <-e.ended:
		return
	}
	select {
	case d := <-e.events:
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", d.request)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(d.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:"+e.options.Name)
		h.Set("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0")
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(d.event)
	case <-r.Context().Done():
	case <-e.ended:
	}
}

// answer refuses what is not about the invocation under way, as Lambda does.
func (e *environment) answer(w http.ResponseWriter, r *http.Request, kind string) {
	e.mu.Lock()
	current := e.current
	if r.PathValue("id") == current {
		e.current = ""
	}
	e.mu.Unlock()
	if r.PathValue("id") != current {
		http.Error(w, `{"errorType":"InvalidRequestID"}`, http.StatusBadRequest)
		return
	}
	e.post(w, r, kind)
}

func (e *environment) post(w http.ResponseWriter, r *http.Request, kind string) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	select {
	case e.answers <- message{kind, body.Bytes()}:
		w.WriteHeader(http.StatusAccepted)
	case <-e.ended:
	}
}

func (e *environment) alive() bool {
	select {
	case <-e.exited:
		return false
	default:
		return true
	}
}

// ready reports a process that waits for the next event.
func (e *environment) ready() bool { return e.alive() && len(e.asked) > 0 }

// process is nil unless it lives.
func (e *environment) process() *os.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.command == nil || !e.alive() {
		return nil
	}
	return e.command.Process
}

func (e *environment) signal(signal os.Signal) bool {
	process := e.process()
	return process != nil && process.Signal(signal) == nil
}

// stop kills the process and waits for everything that start began.
func (e *environment) stop() {
	e.stopOnce.Do(func() {
		e.mu.Lock()
		close(e.ended)
		command, server := e.command, e.server
		e.mu.Unlock()
		if command != nil {
			if err := command.Process.Kill(); err == nil || errors.Is(err, os.ErrProcessDone) {
				<-e.exited
			}
		}
		if server != nil {
			_ = server.Close()
			e.served.Wait()
		}
	})
}

// logBuffer collects what processes write.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
