package memlane_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func ExampleNew() {
	greet := runlane.NewTask[string]("greet", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{greet.Handle(func(_ context.Context, _ *runlane.Attempt, name string) error {
			fmt.Println("hello,", name)
			return nil
		})},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	if _, err := rt.Trigger(ctx, greet.With("lane"), nil); err != nil {
		panic(err)
	}
	if err := rt.Work(ctx, &core.WorkOptions{Drain: true}); err != nil {
		panic(err)
	}
	// Output: hello, lane
}

// NewStorage and NewTransport pair with something else: here with a clock of the test's, and a transport that knows one queue.
func ExampleNewStorage() {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	storage := memlane.NewStorage(&memlane.StorageOptions{Now: clock})
	transport := memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{"mail"}, HandBack: time.Millisecond})
	l, err := lane.New(storage, transport, &lane.Options{Environment: "test"})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	rt, err := core.Open(ctx, l, &core.Options{Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: clock}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	_, err = rt.Trigger(ctx, runlane.NewTask[string]("greet", nil).With("lane"), nil)
	fmt.Println(rt.Environment(), runlane.CodeOf(err)) // the default queue has no binding
	// Output: test configuration_invalid
}
