// Package lambdatest is Lambda's side, for tests: it runs a function's program as Lambda does, behind its Runtime API
// ([Function]), with the environment that the template gives it ([Deployment]), and invokes it as event source mappings
// do ([Mappings]). Each execution environment is a separate process with a separate API endpoint; it serves one
// invocation at a time and stays for the next. An invocation that is not over at its deadline is killed with its
// process. Nothing runs but what an invocation asks for.
//
// Its tests run the Lambda functions as the processes they are, on local AWS: the three programs that are deployed, and
// testdata/program, whose runs do what breaks functions ([Act]). Its benchmark is in bench.
package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	DefaultTimeout     = 60 * time.Second
	DefaultConcurrency = 1000
	// DefaultInitTimeout is how long a process may take until it asks for its first event.
	DefaultInitTimeout = 10 * time.Second
)

// ErrThrottled says that all environments are busy and there may be no more; match with errors.Is.
var ErrThrottled = errors.New("the function's concurrency is exhausted")

// Options of [New].
type Options struct {
	// Program is the bootstrap. Required.
	Program string
	// Environment is the process's, complete: nothing is inherited. AWS_LAMBDA_RUNTIME_API and what else Lambda sets is
	// added.
	Environment []string
	// Name is the function's. "" means "function".
	Name string
	// Timeout of an invocation. 0 means DefaultTimeout.
	Timeout time.Duration
	// Concurrency is how many environments there may be. 0 means DefaultConcurrency.
	Concurrency int
	// InitTimeout bounds the start of a process. 0 means DefaultInitTimeout.
	InitTimeout time.Duration
}

// Function is a deployed function. Build it with [New], end it with Close. It is safe for concurrent use.
type Function struct {
	options Options
	log     logBuffer

	mu       sync.Mutex
	free     []*environment // the one used last is used next
	all      map[*environment]bool
	requests int
	starts   []time.Duration
	closed   bool
}

// New deploys a function: nothing starts before its first invocation.
func New(options Options) *Function {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Concurrency == 0 {
		options.Concurrency = DefaultConcurrency
	}
	if options.InitTimeout == 0 {
		options.InitTimeout = DefaultInitTimeout
	}
	if options.Name == "" {
		options.Name = "function"
	}
	return &Function{options: options, all: map[*environment]bool{}}
}

// Answer is the outcome of an invocation.
type Answer struct {
	// Payload is the response, or the error as the program described it.
	Payload []byte
	// Failure is "" for a response. Else it is what Lambda calls it: Unhandled, Sandbox.Timedout, Runtime.ExitError or
	// Runtime.InitError.
	Failure string
	// Took is the time of the invocation alone, without the start of a process.
	Took time.Duration
	// Cold tells that a process was started for it.
	Cold bool
}

// What Lambda calls failures.
const (
	FailureUnhandled = "Unhandled"
	FailureTimeout   = "Sandbox.Timedout"
	FailureExit      = "Runtime.ExitError"
	FailureInit      = "Runtime.InitError"
)

// Invoke runs the function with one event. The error is for what is no answer of the function: [ErrThrottled], a
// program that cannot be started, an ended context (which ends the invocation too).
func (f *Function) Invoke(ctx context.Context, event []byte) (*Answer, error) {
	e, cold, request, dead, err := f.take()
	for _, d := range dead {
		f.drop(d)
	}
	if err != nil {
		return nil, err
	}
	if cold {
		if err := e.start(); err != nil {
			f.drop(e)
			return nil, err
		}
		if failure := e.awaitInit(ctx); failure != nil {
			f.drop(e)
			failure.Cold = true
			return failure, ctx.Err()
		}
		f.mu.Lock()
		f.starts = append(f.starts, e.initTook)
		f.mu.Unlock()
	}
	answer := e.invoke(ctx, request, event)
	answer.Cold = cold
	if e.ready() {
		f.release(e)
	} else {
		f.drop(e)
	}
	return answer, ctx.Err()
}

// InvokeJSON is [Function.Invoke] with an event that becomes JSON, as encoding/json writes it.
func (f *Function) InvokeJSON(ctx context.Context, event any) (*Answer, error) {
	text, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	return f.Invoke(ctx, text)
}

// take finds a free environment or makes one. dead are those whose process has ended meanwhile.
func (f *Function) take() (e *environment, cold bool, request string, dead []*environment, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	request = fmt.Sprintf("%08d-0000-4000-8000-%012d", f.requests, os.Getpid())
	for len(f.free) > 0 {
		e = f.free[len(f.free)-1]
		f.free = f.free[:len(f.free)-1]
		if e.alive() {
			return e, false, request, dead, nil
		}
		dead = append(dead, e)
	}
	if f.closed || len(f.all)-len(dead) >= f.options.Concurrency {
		return nil, false, "", dead, ErrThrottled
	}
	e = newEnvironment(&f.options, &f.log)
	f.all[e] = true
	return e, true, request, dead, nil
}

func (f *Function) release(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, e)
}

// drop ends an environment that is of no more use.
func (f *Function) drop(e *environment) {
	e.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, e)
}

// Signal sends a signal to the processes of all environments, busy or idle, and returns to how many.
func (f *Function) Signal(signal os.Signal) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for e := range f.all {
		if e.signal(signal) {
			n++
		}
	}
	return n
}

// Processes are the ids of the processes that live.
func (f *Function) Processes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []int
	for e := range f.all {
		if process := e.process(); process != nil {
			ids = append(ids, process.Pid)
		}
	}
	slices.Sort(ids)
	return ids
}

// Starts are how long each process took from its start to its first request for an event.
func (f *Function) Starts() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.starts)
}

// Log is everything that the processes wrote so far.
func (f *Function) Log() string { return f.log.String() }

// Close kills all processes, as Lambda does in the end, and waits for them.
func (f *Function) Close() {
	f.mu.Lock()
	f.closed = true
	var all []*environment
	for e := range f.all {
		all = append(all, e)
	}
	f.free, f.all = nil, map[*environment]bool{}
	f.mu.Unlock()
	for _, e := range all {
		e.stop()
	}
}
