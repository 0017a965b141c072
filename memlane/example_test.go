package memlane_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
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
