package core

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"

	"github.com/runlane/runlane-go"
)

// Application code is called in many places: handlers, middleware, key functions, backoffs, codecs, hooks, metrics, the
// log, and the methods of the errors that these return. A fault in it ends at most one attempt or one call. Handlers,
// and the methods of their results, run in the attempt's goroutine. Everything else is called through this file.

type panicked struct {
	value any    // what recover returned; nil for runtime.Goexit
	stack []byte // nil for runtime.Goexit
}

// isolated calls application code in a separate goroutine, so that a panic or runtime.Goexit is harmless. nil: the code
// returned.
func isolated(call func()) *panicked {
	ended := make(chan *panicked, 1)
	go func() { // ends with the call
		fault := &panicked{}
		defer func() { ended <- fault }()
		fault = caught(call)
	}()
	return <-ended
}

// caught returns a panic as a value. runtime.Goexit still ends the goroutine.
func caught(call func()) (fault *panicked) {
	defer func() {
		if value := recover(); value != nil {
			fault = &panicked{value: value, stack: debug.Stack()}
		}
	}()
	call()
	return nil
}

// isNil finds a nil pointer in a non-nil interface: a nil variable of a pointer type, returned as an error.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// guardedError wraps an application error so that any code may inspect it. A method that panics answers no.
type guardedError struct {
	err  error
	text string
}

// safeError guards the cause of one of our errors, for errors from application code that reach callers.
func safeError(err error) error {
	e, ok := err.(*runlane.Error) //nolint:errorlint // only the outermost error is copied
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

func (t *guardedError) Error() string { return t.text }

func (t *guardedError) Is(target error) (is bool) {
	_ = caught(func() { is = errors.Is(t.err, target) })
	return is
}

func (t *guardedError) As(target any) (as bool) {
	_ = caught(func() { as = errors.As(t.err, target) })
	return as
}

// safeHandler guards an application's log handler, so that its faults harm neither a run nor a worker.
type safeHandler struct{ base slog.Handler }

func safeLogger(logger *slog.Logger) *slog.Logger { return slog.New(safeHandler{logger.Handler()}) }

// Enabled recovers panics only: it is also called for lines that are never written, often in handlers' loops, where a
// goroutine would cost fifty times the answer.
func (h safeHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return h.base.Enabled(ctx, level)
}

func (h safeHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	_ = isolated(func() { err = h.base.Handle(ctx, r) })
	return err
}

func (h safeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := h
	_ = isolated(func() { with.base = h.base.WithAttrs(attrs) })
	return with
}

func (h safeHandler) WithGroup(name string) slog.Handler {
	with := h
	_ = isolated(func() { with.base = h.base.WithGroup(name) })
	return with
}
