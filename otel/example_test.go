package runlaneotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	runlaneotel "github.com/runlane/runlane-go/otel"
)

func ExampleTracer() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // a program has one for OTLP, in a batcher
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	options := &runlaneotel.Options{TracerProvider: provider, Flush: provider.ForceFlush}
	task := runlane.NewTask[string]("mails.send", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers: []runlane.Handler{
			task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
		},
		Logger:  slog.New(runlaneotel.Logs(slog.NewTextHandler(os.Stderr, nil))),
		Metrics: runlaneotel.Metrics(options),
		Tracer:  runlaneotel.Tracer(options),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)

	ctx, span := provider.Tracer("shop").Start(ctx, "POST /mails")
	_, err = rt.RunNow(ctx, task.With("to me"), nil)
	span.End()
	fmt.Println(err)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.SpanContext.TraceID() == span.SpanContext().TraceID())
	}
	// Output:
	// <nil>
	// create mails.send true
	// process mails.send true
	// POST /mails true
}
