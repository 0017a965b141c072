package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// Ticks remove what is no longer kept, each status by its own time, a limited number a tick, and nothing that holds a key.
func TestKeep_TicksRemoveOldRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		task := runlane.NewTask[bool]("keep.me", nil)
		rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
			Keep: core.Keep{Succeeded: day, Failed: 3 * day},
			Handlers: []runlane.Handler{task.Handle(func(_ context.Context, _ *runlane.Attempt, fails bool) error {
				if fails {
					return runlane.Permanent(errors.New("as asked"))
				}
				return nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rt.Close(context.Background()) }()
		ran := func(fails bool, o *runlane.TriggerOptions) *runlane.Run {
			t.Helper()
			result, err := rt.RunNow(t.Context(), task.With(fails), o)
			if err != nil {
				t.Fatal(err)
			}
			return result.Run
		}
		for range 5 {
			ran(false, nil)
		}
		failed := ran(true, nil)
		keyed := ran(false, &runlane.TriggerOptions{IdempotencyKey: "k", IdempotencyTTL: 10 * day})
		cancelled, err := rt.Trigger(t.Context(), task.With(false), &runlane.TriggerOptions{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Runs().Cancel(t.Context(), cancelled.Run.ID, nil); err != nil {
			t.Fatal(err)
		}
		tick := func(removes int, more bool) {
			t.Helper()
			result, err := rt.Tick(t.Context(), &core.TickOptions{Limit: 3})
			if err != nil || result.Pruned.Done != removes || result.Pruned.More != more {
				t.Errorf("a tick removed %d runs, more: %t, want %d, %t: %v", result.Pruned.Done, result.Pruned.More, removes, more, err)
			}
		}
		left := func(n int) {
			t.Helper()
			page, err := rt.Runs().List(t.Context(), nil)
			if err != nil || len(page.Items) != n {
				t.Errorf("%d runs are left, want %d: %v", len(page.Items), n, err)
			}
		}
		tick(0, false)
		time.Sleep(day + time.Second)
		tick(3, true) // the limit
		tick(2, false)
		tick(0, false)
		left(3)
		time.Sleep(2 * day)
		tick(1, false)
		left(2)
		if _, err := rt.Runs().Get(t.Context(), failed.ID); !errors.Is(err, runlane.ErrRunNotFound) {
			t.Errorf("the failed run is kept: %v", err)
		}
		time.Sleep(10 * day)
		tick(1, false)
		if _, err := rt.Runs().Get(t.Context(), keyed.ID); !errors.Is(err, runlane.ErrRunNotFound) {
			t.Errorf("the run is kept although its key is free: %v", err)
		}
		left(1) // the cancelled one: no time is set for them
	})
}
