package core

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"

	"github.com/runlane/runlane-go"
)

// Code of the application is called in many places: handlers, middleware, key functions, backoffs, codecs, hooks,
// metrics, the log, and the methods of all the errors that these return. Whatever it does ends at most one attempt or
// one call. Handlers, and the methods of what they return, run in the goroutine of their attempt. The rest is called
// through the functions of this file.

// panicked is code of the application that did not return.
type panicked struct {
	value any    // what recover returned; nil for runtime.Goexit
	stack []byte // nil for runtime.Goexit
}

// isolated calls code of the application in a separate goroutine, where neither a panic nor runtime.Goexit ends
// anything else. It returns nil when the code has returned.
func isolated(call func()) *panicked {
	ended := make(chan *panicked, 1)
	go func() { // ends with the call
		fault := &panicked{}
		defer func() { ended <- fault }()
		fault = caught(call)
	}()
	return <-ended
}

// caught turns a panic into a value. runtime.Goexit still ends the goroutine.
func caught(call func()) (fault *panicked) {
	defer func() {
		if value := recover(); value != nil {
			fault = &panicked{value: value, stack: debug.Stack()}
		}
	}()
	call()
	return nil
}

// isNil finds a nil pointer inside an interface that is not nil, which a nil variable of a pointer type becomes when it
// is returned as an error.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// guardedError is an error of the application that any code may inspect: a method of it that panics answers no.
type guardedError struct {
	err  error
	text string
}

// safeError makes the cause of one of our errors harmless. It is for errors that reach callers from code of the
// application.
func safeError(err error) error {
	e, ok := err.(*runlane.Error) //nolint:errorlint // only what stands outermost is copied
	if !ok || e == nil || e.Cause == nil {
		return err
	}
	if _, ours := e.Cause.(*runlane.Error); ours { //nolint:errorlint // the same for its own cause
		copied := *e
		copied.Cause = safeError(e.Cause)
		return &copied
	}
	copied := *e
	copied.Cause = safeCause(e.Cause)
	return &copied
}

func safeCause(err error) error {
	t := &guardedError{err: err, text: "an error whose text panics"}
	_ = caught(func() { t.text = err.Error() })
	return t
}

// Error is the text as it was when safeError took it.
func (t *guardedError) Error() string { return t.text }

// Is inspects the error's chain.
func (t *guardedError) Is(target error) (is bool) {
	_ = caught(func() { is = errors.Is(t.err, target) })
	return is
}

// As inspects the error's chain.
func (t *guardedError) As(target any) (as bool) {
	_ = caught(func() { as = errors.As(t.err, target) })
	return as
}

// safeHandler is an application's log handler that cannot harm a run or the worker that logs.
type safeHandler struct{ base slog.Handler }

// safeLogger guards a logger.
func safeLogger(logger *slog.Logger) *slog.Logger { return slog.New(safeHandler{logger.Handler()}) }

// Enabled implements slog.Handler. It is also asked about lines that are never written, often in the loops of handlers,
// where a goroutine would cost fifty times what the answer costs. So only its panics are recovered.
func (h safeHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return h.base.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h safeHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	_ = isolated(func() { err = h.base.Handle(ctx, r) })
	return err
}

// WithAttrs implements slog.Handler.
func (h safeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := h
	_ = isolated(func() { with.base = h.base.WithAttrs(attrs) })
	return with
}

// WithGroup implements slog.Handler.
func (h safeHandler) WithGroup(name string) slog.Handler {
	with := h
	_ = isolated(func() { with.base = h.base.WithGroup(name) })
	return with
}
