package core

import (
	"context"
	"log/slog"
	"strings"

	"github.com/runlane/runlane-go"
)

// The attributes of this package's log lines. Messages are constant; payloads are never logged.
const (
	attrRunID    = "run_id"
	attrTask     = "task"
	attrQueue    = "queue"
	attrAttempt  = "attempt"
	attrWorkerID = "worker_id"
	attrCode     = "code"
	attrError    = "error"
)

func (rt *Runtime) logRun(ctx context.Context, run *runlane.Run, message string, err error) {
	if !rt.logger.Enabled(ctx, slog.LevelWarn) {
		return
	}
	attrs := append(runAttrs(run), errorAttrs(err)...)
	rt.logger.LogAttrs(ctx, slog.LevelWarn, message, attrs...)
}

func runAttrs(run *runlane.Run) []slog.Attr {
	attrs := make([]slog.Attr, 0, 7)
	attrs = append(attrs, slog.String(attrRunID, string(run.ID)), slog.String(attrTask, string(run.TaskID)),
		slog.String(attrQueue, string(run.Queue)))
	if n := run.Counters.Attempts; n > 0 {
		attrs = append(attrs, slog.Int(attrAttempt, n))
	}
	return attrs
}

func errorAttrs(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	code := runlane.CodeOf(err)
	if code == "" {
		code = runlane.ErrInternal
	}
	return []slog.Attr{slog.String(attrCode, string(code)), slog.String(attrError, strings.TrimPrefix(err.Error(), string(code)+": "))}
}

// lazyHandler adds an attempt's attributes only when a line is logged, so that silent attempts do not pay for them.
type lazyHandler struct{ of *execution }

func (h *lazyHandler) base() slog.Handler { return h.of.rt.logger.Handler() }

func (h *lazyHandler) resolve() slog.Handler {
	return h.base().WithAttrs(append(runAttrs(h.of.started), slog.String(attrWorkerID, h.of.workerID)))
}

func (h *lazyHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.base().Enabled(ctx, level)
}

func (h *lazyHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.resolve().Handle(h.contextOf(ctx), r)
}

// contextOf gives lines of methods without a context, such as Info, the trace of the attempt.
func (h *lazyHandler) contextOf(ctx context.Context) context.Context {
	if h.of.rt.tracer != nil && ctx == context.Background() {
		return h.of.handling
	}
	return ctx
}

// WithAttrs puts the attempt's attributes before others.
func (h *lazyHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.wrap(h.resolve().WithAttrs(attrs))
}

// WithGroup leaves the attempt's attributes outside the group.
func (h *lazyHandler) WithGroup(name string) slog.Handler { return h.wrap(h.resolve().WithGroup(name)) }

func (h *lazyHandler) wrap(base slog.Handler) slog.Handler {
	if h.of.rt.tracer == nil {
		return base
	}
	return &tracedHandler{base, h}
}

// tracedHandler is an attempt's handler with further attributes.
type tracedHandler struct {
	slog.Handler

	of *lazyHandler
}

func (h *tracedHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(h.of.contextOf(ctx), r)
}

func (h *tracedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.of.wrap(h.Handler.WithAttrs(attrs))
}

func (h *tracedHandler) WithGroup(name string) slog.Handler {
	return h.of.wrap(h.Handler.WithGroup(name))
}
