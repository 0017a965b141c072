package core_test

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A tracer that prints. Module otel has the one for OpenTelemetry.
func ExampleRuntime_Trace() {
	ctx := context.Background()
	tracer := func(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
		if w.Kind == core.WorkCreate {
			w.Carrier = map[string]string{"traceparent": "00-1"} // of the new span; attempts and children get it
		}
		fmt.Println("begin", w.Kind, w.TaskID, w.Name, w.Carrier)
		return ctx, func(core.WorkEnd) { fmt.Println("end", w.Kind) }
	}
	task := runlane.NewTask[string]("mails.send", nil)
	rt := do(core.Open(ctx, memlane.New(), &core.Options{Tracer: tracer, Handlers: []runlane.Handler{
		task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
	}}))
	defer rt.Close(ctx)

	if rt.Traces() { // a program's own work around the runtime's
		inside, end := rt.Trace(ctx, core.Work{Kind: core.WorkInvocation, Name: "nightly"})
		defer end(core.WorkEnd{})
		ctx = inside
	}
	do(rt.RunNow(ctx, task.With("to me"), nil))
	// Output:
	// begin invocation  nightly map[]
	// begin create mails.send  map[traceparent:00-1]
	// end create
	// begin attempt mails.send  map[traceparent:00-1]
	// end attempt
	// end invocation
}
