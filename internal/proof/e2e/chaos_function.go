package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// ForwardVariable puts the clock of the whole machine forward, by a duration: that of the process, as a program's own clock does, and
// that of the service that tells it its deadline. It stands beside the variables of every function, and those of package lambdatest.
const ForwardVariable = "FORWARD"

// What the tasks allow an attempt, and how they are retried: only a task that never lets its worker end runs out of
// attempts.
const (
	attemptTime = 2 * time.Second
	maxAttempts = 100
	retryDelay  = 500 * time.Millisecond
)

// Job is the payload.
type Job struct {
	// Milliseconds the attempt takes, half of them before its effect.
	Milliseconds int `json:"milliseconds,omitempty"`
	// Failures come first, without an effect.
	Failures int `json:"failures,omitempty"`
	// Key partitions the narrow queue.
	Key string `json:"key,omitempty"`
}

// Narrow is a bounded queue.
var Narrow = runlane.Queue{Name: "narrow", Concurrency: 2, DispatchTimeout: 10 * time.Second}

// The tasks. An attempt of Steady and of Tight has one effect, a line in the ledger; Poison takes its process along.
var (
	Steady = newTask("steady", runlane.DefaultQueue)
	Tight  = newTask("tight", Narrow)
	Poison = newTask("poison", runlane.DefaultQueue)
)

func newTask(id runlane.TaskID, queue runlane.Queue) *runlane.Task[Job] {
	return runlane.NewTask(id, &runlane.TaskOptions[Job]{
		ConcurrencyKey: func(j Job) string { return j.Key },
		Queue:          queue,
		Retry:          runlane.Retry{MaxAttempts: maxAttempts, Backoff: runlane.Fixed(retryDelay)},
		Timeout:        attemptTime,
	})
}

const (
	runtimeVariable = "AWS_LAMBDA_RUNTIME_API"
	deadlineHeader  = "Lambda-Runtime-Deadline-Ms"
)

// putClockForward puts the clock of the whole machine forward, where a variable says so.
func putClockForward() {
	ahead := durationOf(ForwardVariable)
	if ahead == 0 {
		return
	}
	if os.Getenv(functions.RoleVariable) == functions.RoleTick {
		// the tick keeps a twentieth of the time until its deadline free, which looks long from the real time
		ahead += ahead / 10
	}
	putForward(ahead)
}

// durationOf panics for what is none: the process then ends before its first event, which the test sees.
func durationOf(variable string) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// putForward stands between this process and the Runtime API, and tells deadlines by the clock of this machine.
func putForward(ahead time.Duration) {
	api := &url.URL{Scheme: "http", Host: os.Getenv(runtimeVariable)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) },
		ModifyResponse: func(r *http.Response) error {
			text := r.Header.Get(deadlineHeader)
			if text == "" {
				return nil
			}
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			r.Header.Set(deadlineHeader, strconv.FormatInt(at+ahead.Milliseconds(), 10))
			return nil
		},
	}}
	go func() { panic(server.Serve(listener)) }() // ends with the process
	if err := os.Setenv(runtimeVariable, listener.Addr().String()); err != nil {
		panic(err)
	}
}

// openTasks opens the tasks that chaos executes.
func openTasks(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	ahead := durationOf(lambdatest.ClockVariable) + durationOf(ForwardVariable)
	return core.Open(ctx, l, &core.Options{
		World: &core.World{Now: func() time.Time { return time.Now().Add(ahead) }},
		Handlers: []runlane.Handler{
			Steady.Handle(work), Tight.Handle(work), Poison.Handle(poison),
		},
	})
}

func work(ctx context.Context, a *runlane.Attempt, job Job) error {
	half := time.Duration(job.Milliseconds) * time.Millisecond / 2
	if !pause(ctx, half) {
		return ctx.Err()
	}
	if a.Run.Counters.Failures < job.Failures {
		return errors.New("as asked")
	}
	effect := lambdatest.Entry{Name: string(a.Run.ID), Attempt: a.Number, Process: os.Getpid()}
	if err := effect.Write(os.Getenv(lambdatest.LedgerVariable)); err != nil {
		return err
	}
	pause(ctx, half)
	return ctx.Err()
}

// poison lets the others of its batch finish, mostly, and takes the process along without a word.
func poison(_ context.Context, _ *runlane.Attempt, job Job) error {
	<-time.After(time.Duration(job.Milliseconds) * time.Millisecond)
	os.Exit(3)
	return nil
}

// pause waits, and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
