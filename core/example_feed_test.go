package core_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// What happens to all runs, from a moment on; the cursor is kept with what was done about it.
func ExampleRuns_Feed() {
	ctx := context.Background()
	greet := runlane.NewTask[string]("greet", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{
			greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
		},
	})
	if err != nil {
		panic(err)
	}
	defer rt.Close(ctx)
	now, err := rt.Runs().FeedStart(ctx)
	if err != nil {
		panic(err)
	}

	for _, name := range []string{"ada", "bob"} {
		if _, err := rt.Trigger(ctx, greet.With(name), &runlane.TriggerOptions{RunID: runlane.RunID(name)}); err != nil {
			panic(err)
		}
	}
	if err := rt.Work(ctx, &core.WorkOptions{Concurrency: 1, Drain: true}); err != nil {
		panic(err)
	}
	for record, err := range rt.Runs().Feed(ctx, &core.FeedOptions{After: now}) {
		if err != nil {
			panic(err)
		}
		if record.Type() == runlane.EventCreated || record.Type() == runlane.EventSucceeded {
			fmt.Println(record.RunID, record.Type())
		}
	}
	// Unordered output:
	// ada run.created
	// bob run.created
	// ada run.succeeded
	// bob run.succeeded
}
