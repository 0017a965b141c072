package runlaneotel

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Logs adds trace_id and span_id to lines whose context has a span, outside of all groups. As core.Options.Logger it
// serves the runtime's lines and those of runlane.Attempt.Logger, also of methods without a context, such as Info.
func Logs(base slog.Handler) slog.Handler { return &logs{Handler: base, root: base} }

// logs is base with attributes and groups; root is base up to the first group, and grouped what came from it on.
type logs struct {
	slog.Handler

	root    slog.Handler
	grouped []func(slog.Handler) slog.Handler
}

func (h *logs) Handle(ctx context.Context, r slog.Record) error {
	at := trace.SpanContextFromContext(ctx)
	if !at.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String("trace_id", at.TraceID().String()), slog.String("span_id", at.SpanID().String())}
	if len(h.grouped) == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	inner := h.root.WithAttrs(ids)
	for _, apply := range h.grouped {
		inner = apply(inner)
	}
	return inner.Handle(ctx, r)
}

func (h *logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(len(h.grouped) > 0, func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *logs) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(true, func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *logs) with(grouped bool, apply func(slog.Handler) slog.Handler) slog.Handler {
	if !grouped {
		next := apply(h.Handler)
		return &logs{Handler: next, root: next}
	}
	return &logs{
		Handler: apply(h.Handler), root: h.root,
		grouped: append(h.grouped[:len(h.grouped):len(h.grouped)], apply),
	}
}
