package hostiletest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// HandlerTimeout is the timeout of the task whose handler blocks.
const HandlerTimeout = 50 * time.Millisecond

// Handler is a handler that does what no handler should, and how its run ends: alone, whatever it does.
type Handler struct {
	Name string
	// Execute is the handler's body.
	Execute func(ctx context.Context, a *runlane.Attempt) error
	// Status and Code are how the run ends. Code is "" for a run that does not fail.
	Status runlane.Status
	Code   runlane.ErrorCode
	// Message begins the message of the failure.
	Message string
	// Timeout is the task's. 0 means none.
	Timeout time.Duration
	// Retry is the task's.
	Retry runlane.Retry
}

// hostileError is an error whose methods do what no method of an error should.
type hostileError struct {
	text   func() string
	is     func() bool
	as     func() bool
	unwrap func() error
}

// Error implements error.
func (e *hostileError) Error() string {
	if e.text == nil {
		return "hostile"
	}
	return e.text()
}

// Is is asked by errors.Is.
func (e *hostileError) Is(error) bool { return e.is != nil && e.is() }

// As is asked by errors.As.
func (e *hostileError) As(any) bool { return e.as != nil && e.as() }

// Unwrap is asked by both.
func (e *hostileError) Unwrap() error {
	if e.unwrap == nil {
		return nil
	}
	return e.unwrap()
}

// pointerError is an error of the usual kind, whose methods need a value.
type pointerError struct{ text string }

// Error implements error.
func (e *pointerError) Error() string { return e.text }

// falseFault calls itself a fault of the Go runtime.
type falseFault struct{}

// RuntimeError implements runtime.Error.
func (falseFault) RuntimeError() {}

// Error implements error.
func (falseFault) Error() string { panic("a fault that panics") }

var _ runtime.Error = falseFault{}

// hostileText is a value whose text panics.
type hostileText struct{}

// String implements fmt.Stringer.
func (hostileText) String() string { panic("a text that panics") }

func exits() string { runtime.Goexit(); return "" }
func panics() bool  { panic("a method that panics") }

func returns(err error) func(context.Context, *runlane.Attempt) error {
	return func(context.Context, *runlane.Attempt) error { return err }
}

// Blocks is the name of the function in which the goroutines of handlers that never return stay: a check for leaks
// leaves them out.
const Blocks = "github.com/runlane/runlane-go/internal/proof/hostiletest.block"

func block() { select {} }

// Handlers are all of them.
func Handlers() []Handler {
	const failed, succeeded = runlane.StatusFailed, runlane.StatusSucceeded
	return append([]Handler{
		{
			Name:    "a nil *Error",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Message: "The handler returned a nil *runlane.Error",
			Execute: returns((*runlane.Error)(nil)),
		},
		{
			Name:    "a nil *ReleaseError",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Message: "The handler returned a nil *runlane.ReleaseError",
			Execute: returns((*runlane.ReleaseError)(nil)),
		},
		{
			Name:    "a nil *PermanentError",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Message: "The handler returned a nil *runlane.PermanentError",
			Execute: returns((*runlane.PermanentError)(nil)),
		},
		{
			Name:    "a nil *RetryAfterError",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Message: "The handler returned a nil *runlane.RetryAfterError",
			Execute: returns((*runlane.RetryAfterError)(nil)),
		},
		{
			Name:    "a nil error of another type",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Message: "The handler returned a nil *hostiletest.pointerError",
			Execute: returns((*pointerError)(nil)),
		},
		{Name: "a nil *Error, wrapped", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(fmt.Errorf("wrapped: %w", (*runlane.Error)(nil)))},
		{Name: "a nil *ReleaseError, joined", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(errors.Join(errors.New("first"), (*runlane.ReleaseError)(nil)))},
		{
			Name:    "a permanent nothing",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Execute: returns(&runlane.PermanentError{}),
		},
		{
			Name:    "a retry after nothing",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Execute: returns(&runlane.RetryAfterError{}),
		},
		{Name: "a permanent nil *Error", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(runlane.Permanent((*runlane.Error)(nil)))},
		{
			Name:    "an error without anything",
			Status:  failed,
			Code:    runlane.ErrTaskFailed,
			Execute: returns(&runlane.Error{}),
		},
		{
			Name:   "a nil error that is an interface",
			Status: succeeded,
			Execute: func(context.Context, *runlane.Attempt) error {
				var err error
				return err
			},
		},
		{
			Name:    "an Error that panics",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The error that the handler returned panicked",
			Execute: returns(&hostileError{text: func() string { panic("text") }}),
		},
		{
			Name:    "an Is that panics",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The error that the handler returned panicked",
			Execute: func(ctx context.Context, _ *runlane.Attempt) error {
				<-ctx.Done() // Is is asked once the context has ended
				return &hostileError{is: panics}
			},
			Timeout: HandlerTimeout,
		},
		{
			Name:    "an As that panics",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The error that the handler returned panicked",
			Execute: returns(&hostileError{as: panics}),
		},
		{Name: "an As that claims everything", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(&hostileError{as: func() bool { return true }})},
		{
			Name:    "an Unwrap that panics",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The error that the handler returned panicked",
			Execute: returns(&hostileError{unwrap: func() error { panic("unwrap") }}),
		},
		{Name: "an Error that exits its goroutine", Status: failed, Code: runlane.ErrTaskPanicked,
			Message: "The handler ended its goroutine", Execute: returns(&hostileError{text: exits})},
		{Name: "an Error that blocks", Status: failed, Code: runlane.ErrTaskTimedOut, Timeout: HandlerTimeout,
			Execute: returns(&hostileError{text: func() string { block(); return "" }})},
		{Name: "an error that wraps itself", Status: failed, Code: runlane.ErrTaskTimedOut, Timeout: HandlerTimeout,
			Execute: func(ctx context.Context, _ *runlane.Attempt) error {
				e := &hostileError{}
				e.unwrap = func() error {
					if context.Cause(ctx) != nil {
						block() // the test is over: use no processor any more
					}
					return e
				}
				return e
			}},
		{Name: "a code of a megabyte", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(runlane.ErrorCode(strings.Repeat("x", 1<<20)))},
		{Name: "a code of a terminal", Status: failed, Code: runlane.ErrTaskFailed,
			Execute: returns(&runlane.Error{Code: "a\x1b[2J\xff", Message: "m"})},
		{
			Name:   "a message that is no text",
			Status: failed,
			Code:   "own",
			Execute: returns(&runlane.Error{
				Code:    "own",
				Message: "a\xff\x00b",
				Meta:    map[string]string{"a\xff": "b\xff"},
			}),
		},
		{
			Name:   "a message of a megabyte",
			Status: failed,
			Code:   "own",
			Execute: returns(&runlane.Error{
				Code:    "own",
				Message: strings.Repeat("é", 1<<20),
				Meta:    map[string]string{"k": strings.Repeat("x", 1<<20)},
			}),
		},
		{
			Name:   "details without number",
			Status: failed,
			Code:   "own",
			Execute: func(context.Context, *runlane.Attempt) error {
				meta := map[string]string{}
				for i := range 100_000 {
					meta[fmt.Sprint(i)] = "x"
				}
				return &runlane.Error{Code: "own", Message: "m", Meta: meta}
			},
		},
	}, append(endings(), callbacks()...)...)
}

// endings are the ways to leave without returning, and waits that cannot be.
// nothing is a nil that no analysis sees: panic(nil) is what it is about.
var nothing any

func endings() []Handler {
	const failed, succeeded = runlane.StatusFailed, runlane.StatusSucceeded
	return []Handler{
		{Name: "a panic", Status: failed, Code: runlane.ErrTaskPanicked, Message: "The handler panicked",
			Execute: func(context.Context, *runlane.Attempt) error { panic("text") }},
		{Name: "a panic with nil", Status: failed, Code: runlane.ErrTaskPanicked, Message: "The handler panicked",
			Execute: func(context.Context, *runlane.Attempt) error { panic(nothing) }},
		{
			Name:    "a panic with a nil *Error",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The handler panicked",
			Execute: func(context.Context, *runlane.Attempt) error { panic((*runlane.Error)(nil)) },
		},
		{
			Name:    "a panic whose text panics",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The handler panicked",
			Execute: func(context.Context, *runlane.Attempt) error { panic(hostileText{}) },
		},
		{Name: "a panic with a false fault", Status: failed, Code: runlane.ErrTaskPanicked,
			Execute: func(context.Context, *runlane.Attempt) error { panic(falseFault{}) }},
		{Name: "a panic whose text exits the goroutine", Status: failed, Code: runlane.ErrTaskPanicked,
			Execute: func(context.Context, *runlane.Attempt) error { panic(&hostileError{text: exits}) }},
		{Name: "a panic while it exits", Status: failed, Code: runlane.ErrTaskPanicked,
			Execute: func(context.Context, *runlane.Attempt) error {
				defer func() { panic("late") }()
				runtime.Goexit()
				return nil
			}},
		{
			Name:    "an exit of the goroutine",
			Status:  failed,
			Code:    runlane.ErrTaskPanicked,
			Message: "The handler ended its goroutine",
			Execute: func(context.Context, *runlane.Attempt) error { exits(); return nil },
		},
		{Name: "a handler that blocks", Status: failed, Code: runlane.ErrTaskTimedOut, Timeout: HandlerTimeout,
			Execute: func(context.Context, *runlane.Attempt) error { block(); return nil }},
		{
			Name:    "a release for no time",
			Status:  failed,
			Code:    runlane.ErrValidationFailed,
			Execute: returns(runlane.Release(0, "")),
		},
		{
			Name:    "a release for ever",
			Status:  failed,
			Code:    runlane.ErrValidationFailed,
			Execute: returns(runlane.Release(1<<63-1, "")),
		},
		{
			Name:   "a release whose reason is no text",
			Status: succeeded,
			Execute: func(_ context.Context, a *runlane.Attempt) error {
				if a.Run.Counters.Releases > 0 {
					return nil
				}
				return &runlane.ReleaseError{
					Delay:  time.Millisecond,
					Reason: "a\xff" + strings.Repeat("\xff", 300),
					Meta:   map[string]string{"a\xff": "\xff"},
				}
			},
		},
		{Name: "a retry before now", Status: succeeded, Retry: runlane.Retry{MaxAttempts: 2},
			Execute: func(_ context.Context, a *runlane.Attempt) error {
				if a.Number > 1 {
					return nil
				}
				return runlane.RetryAfter(-1<<63, errors.New("x"))
			}},
		backoff("panics", func(int) time.Duration { panic("backoff") }),
		backoff("exits its goroutine", func(int) time.Duration { exits(); return 0 }),
		backoff("blocks", func(int) time.Duration { block(); return 0 }),
		backoff("lies in the past", func(int) time.Duration { return -1 << 63 }),
	}
}

// backoff is a task that fails once, whose backoff does something. A run that is not retried yet is one that was given
// a backoff.
func backoff(name string, fn runlane.BackoffFunc) Handler {
	return Handler{
		Name:   "a backoff that " + name,
		Status: runlane.StatusSucceeded,
		Retry:  runlane.Retry{MaxAttempts: 2, Backoff: fn, NoJitter: true},
		Execute: func(_ context.Context, a *runlane.Attempt) error {
			if a.Number > 1 {
				return nil
			}
			return errors.New("once")
		},
	}
}

// marshaler is a value whose encoding panics, or returns an error that does.
type marshaler struct{ panics bool }

// MarshalJSON implements json.Marshaler.
func (m marshaler) MarshalJSON() ([]byte, error) {
	if m.panics {
		panic("an encoding that panics")
	}
	return nil, &hostileError{is: panics, as: panics, unwrap: func() error { panic("unwrap") }}
}
