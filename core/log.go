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
type lazyHandler struct {
	base     slog.Handler
	run      *runlane.Run
	workerID string
}

func (h *lazyHandler) resolve() slog.Handler {
	return h.base.WithAttrs(append(runAttrs(h.run), slog.String(attrWorkerID, h.workerID)))
}

func (h *lazyHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.base.Enabled(ctx, level)
}

func (h *lazyHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.resolve().Handle(ctx, r)
}

// WithAttrs puts the attempt's attributes before others.
func (h *lazyHandler) WithAttrs(attrs []slog.Attr) slog.Handler { return h.resolve().WithAttrs(attrs) }

// WithGroup leaves the attempt's attributes outside the group.
func (h *lazyHandler) WithGroup(name string) slog.Handler { return h.resolve().WithGroup(name) }
