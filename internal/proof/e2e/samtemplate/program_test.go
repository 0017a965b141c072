package samtemplate

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
)

// The program that the functions run: one task does whatever its payload says, on a queue without a limit and on one with.
var (
	bounded = runlane.Queue{Name: "ordered", Concurrency: 1}

	act   = runlane.NewTask("act", &runlane.TaskOptions[order]{Queue: runlane.Queue{Name: "plain"}, Retry: retry})
	one   = runlane.NewTask("one", &runlane.TaskOptions[order]{Queue: bounded, Retry: retry})
	alien = runlane.NewTask("alien", &runlane.TaskOptions[order]{Queue: runlane.Queue{Name: "plain"}}) // no program has a handler

	nod = runlane.NewSignal[string]("nod")

	retry = runlane.Retry{MaxAttempts: 3}
)

// order is what an attempt does.
type order struct {
	Do   string
	Bulk string // too much for a run item
}

// What programVariable may say.
const (
	busyProgram = "busy"
	idleProgram = "idle"    // neither a schedule nor a bounded queue
	boundedIdle = "bounded" // no schedule
)

func openProgram(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	switch os.Getenv(programVariable) {
	case idleProgram:
		return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{act.Handle(perform)}})
	case boundedIdle:
		return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{act.Handle(perform), one.Handle(perform)}})
	}
	return core.Open(ctx, l, &core.Options{
		Handlers: []runlane.Handler{act.Handle(perform), one.Handle(perform)},
		Keep:     runlane.KeepAll(runlane.MinKeep),
		Schedules: []runlane.Schedule{
			{ID: "often", When: runlane.Every(time.Second), Call: act.With(order{}), Overlap: runlane.OverlapReplace},
		},
	})
}

func perform(ctx context.Context, attempt *runlane.Attempt, o order) error {
	switch o.Do {
	case "fail": // once
		if attempt.Number == 1 {
			return runlane.RetryAfter(time.Second, errors.New("scripted"))
		}
	case "permanent":
		return runlane.Permanent(errors.New("scripted"))
	case "release": // once
		if attempt.Number == 1 {
			return runlane.Release(time.Second, "scripted")
		}
	case "bulk":
		return attempt.SetOutput(noise(12 << 10))
	case "note":
		return attempt.Progress(ctx, "half-way")
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "wait":
		if err := attempt.Do(ctx, "once", func(context.Context) error { return nil }); err != nil {
			return err
		}
		if _, err := nod.Wait(ctx, attempt, nil); err != nil {
			return err
		}
		return callTwo(ctx, attempt)
	case "call and hang":
		_ = callTwo(ctx, attempt) // it begins no wait as long as it executes
		<-ctx.Done()
		return ctx.Err()
	case "follow":
		key := string(attempt.Run.ID)
		_, err := attempt.Trigger(ctx, act.With(order{Bulk: noise(12 << 10)}), keys(key))
		if err == nil {
			_, err = attempt.Trigger(ctx, one.With(order{}), keys(key))
		}
		return err
	}
	return nil
}

func callTwo(ctx context.Context, attempt *runlane.Attempt) error {
	_, err := attempt.CallRuns(ctx, runlane.CallRequest{
		CallOptions: runlane.CallOptions{Name: "two"}, Calls: []runlane.Call{act.With(order{}), act.With(order{})},
	})
	return err
}

func keys(key string) *runlane.TriggerOptions {
	return &runlane.TriggerOptions{IdempotencyKey: key, SingletonKey: key}
}

// noise does not compress.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteByte(byte('!' + rand.IntN(90)))
	}
	return b.String()
}
