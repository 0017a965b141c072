package runlaneotel_test

import (
	"context"
	"log/slog"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	runlaneotel "github.com/runlane/runlane-go/otel"
)

// What a run in memory costs without traces, with traces that are not sampled, and with all of them, unexported.
func BenchmarkRun(b *testing.B) {
	traced := func(sampler sdktrace.Sampler) core.Tracer {
		return runlaneotel.Tracer(&runlaneotel.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)),
		})
	}
	for _, c := range []struct {
		name   string
		tracer core.Tracer
	}{{"off", nil}, {"never", traced(sdktrace.NeverSample())}, {"always", traced(sdktrace.AlwaysSample())}} {
		b.Run(c.name, func(b *testing.B) {
			task := runlane.NewTask[int]("task", nil)
			rt, err := core.Open(b.Context(), memlane.New(), &core.Options{
				Logger: slog.New(slog.DiscardHandler), Tracer: c.tracer,
				Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil })},
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rt.Trigger(b.Context(), task.With(1), nil); err != nil {
					b.Fatal(err)
				}
				if _, err := rt.ExecuteNext(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
			if err := rt.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
