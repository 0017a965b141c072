// Command openapifuzz makes what make openapi-fuzz serves and names. With FILE it writes an export: runs in the
// statuses that last, with the tasks, queues, schedules and flows that they use. With an address and a token it claims
// the runs that are there for it, and prints their tokens as a dictionary of the tool's configuration.
//
//	go run ./internal/tools/openapifuzz FILE
//	go run ./internal/tools/openapifuzz ADDRESS TOKEN
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
	var err error
	switch len(os.Args) {
	case 2:
		err = write(os.Args[1])
	case 3:
		err = printClaims(context.Background(), os.Stdout, os.Args[1], os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: openapifuzz FILE | openapifuzz ADDRESS TOKEN")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapifuzz:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	file, err := os.Create(path) // the file that the caller names
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
	// claimed is a task without a handler here: its runs are there to be claimed.
	claimed = runlane.NewTask("fuzz.claimed", &runlane.TaskOptions[json.RawMessage]{
		Queue: runlane.Queue{Name: claims},
	})
)

// claims is the queue of the runs that are claimed.
const claims runlane.QueueName = "claims"

// toClaim is their number: six routes end a claim, and each is called some hundred times.
const toClaim = 400

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

type flowOf struct {
	id   runlane.FlowID
	task *runlane.Task[json.RawMessage]
}

// flows are what is started, each of two nodes of which the second goes after the first.
var flows = []flowOf{
	{"flow-ended", sound},
	{"flow-failed", broken},
	{"flow-waiting", waiting},
	{"flow-waiting-too", waiting},
}

func (f *flowOf) build() *runlane.Flow {
	flow := runlane.NewFlow(f.id)
	first := flow.Add("first", f.task.With(json.RawMessage(`{}`)), nil)
	flow.Add("second", sound.With(json.RawMessage(`{}`)), &runlane.NodeOptions{After: []runlane.Node{first}})
	return flow
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
	for i := range flows {
		if _, err := rt.StartFlow(ctx, flows[i].build(), nil); err != nil {
			return err
		}
	}
	for {
		done, err := rt.ExecuteNext(ctx, nil)
		if err != nil {
			return err
		}
		if done.Run == nil {
			return finish(ctx, rt)
		}
	}
}

// finish is what is done by hand: one run is cancelled, some are left queued, and a tick stores schedules and tasks.
func finish(ctx context.Context, rt *core.Runtime) error {
	_, cancelled := rt.Runs().Cancel(ctx, "cancelled", nil)
	_, ticked := rt.Tick(ctx, nil)
	_, queued := rt.Trigger(ctx, sound.With(json.RawMessage(`{}`)), &runlane.TriggerOptions{RunID: "queued"})
	err := errors.Join(cancelled, ticked, queued)
	for range toClaim {
		_, triggered := rt.Trigger(ctx, claimed.With(json.RawMessage(`{}`)), nil)
		err = errors.Join(err, triggered)
	}
	return err
}
