// Command openapifuzz writes the environment that make openapi-fuzz serves: an export of runs in the statuses that
// last, with the tasks, queues and schedules that they use.
//
//	go run ./internal/proof/openapifuzz FILE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openapifuzz FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "openapifuzz:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	file, err := os.Create(path) //nolint:gosec // the file that the caller names
	if err != nil {
		return err
	}
	return errors.Join(export(context.Background(), file), file.Close())
}

var (
	sound   = runlane.NewTask[json.RawMessage]("fuzz.sound", nil)
	broken  = runlane.NewTask[json.RawMessage]("fuzz.broken", nil)
	retried = runlane.NewTask("fuzz.retried", &runlane.TaskOptions[json.RawMessage]{
		Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Hour), NoJitter: true},
	})
	waiting  = runlane.NewTask[json.RawMessage]("fuzz.waiting", nil)
	answered = runlane.NewSignal[json.RawMessage]("answered")
)

var handlers = []runlane.Handler{
	sound.Handle(func(_ context.Context, a *runlane.Attempt, payload json.RawMessage) error {
		return a.SetOutput(payload)
	}),
	broken.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
		return runlane.Permanent(errors.New("it is broken"))
	}),
	retried.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
		return errors.New("it is broken for now")
	}),
	waiting.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
		_, err := runlane.Step(ctx, a, "looked up", func(context.Context) (int, error) { return 7, nil })
		if err != nil {
			return err
		}
		_, err = answered.Wait(ctx, a, nil)
		return err
	}),
}

// runs are what is triggered. Those that are held back have an hour until they start.
var runs = []struct {
	id   runlane.RunID
	task *runlane.Task[json.RawMessage]
	held bool
}{
	{"ended", sound, false},
	{"ended-too", sound, false},
	{"failed", broken, false},
	{"retrying", retried, false},
	{"waiting", waiting, false},
	{"waiting-too", waiting, false},
	{"scheduled", sound, true},
	{"cancelled", sound, true},
}

// export makes the runs in memory and writes them.
func export(ctx context.Context, to io.Writer) error {
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers: handlers,
		Logger:   slog.New(slog.DiscardHandler),
		Schedules: []runlane.Schedule{{
			ID:   "nightly",
			When: runlane.Cron("0 2 * * *"),
			Call: sound.With(json.RawMessage(`{}`)),
		}},
	})
	if err != nil {
		return err
	}
	err = fill(ctx, rt)
	if err == nil {
		_, err = rt.Export(ctx, to, nil)
	}
	return errors.Join(err, rt.Close(ctx))
}

func fill(ctx context.Context, rt *core.Runtime) error {
	for _, run := range runs {
		options := &runlane.TriggerOptions{RunID: run.id, IdempotencyKey: string(run.id)}
		if run.held {
			options.Delay = time.Hour
		}
		if _, err := rt.Trigger(ctx, run.task.With(json.RawMessage(`{"to":"ada"}`)), options); err != nil {
			return err
		}
	}
	for range runs {
		if done, err := rt.ExecuteNext(ctx, nil); err != nil || done.Run == nil {
			return errors.Join(err, finish(ctx, rt))
		}
	}
	return finish(ctx, rt)
}

// finish is what is done by hand: one run is cancelled, one is left queued, and a tick stores schedules and tasks.
func finish(ctx context.Context, rt *core.Runtime) error {
	_, cancelled := rt.Runs().Cancel(ctx, "cancelled", nil)
	_, ticked := rt.Tick(ctx, nil)
	_, queued := rt.Trigger(ctx, sound.With(json.RawMessage(`{}`)), &runlane.TriggerOptions{RunID: "queued"})
	return errors.Join(cancelled, ticked, queued)
}
