package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// goneTransport refuses every wakeup for good, if it is told to.
type goneTransport struct {
	lane.Transport

	refuses bool
}

func (r *goneTransport) Unwrap() lane.Transport { return r.Transport }

func (r *goneTransport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if !r.refuses {
		return r.Transport.PublishWakeups(ctx, c)
	}
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i] = lane.PublishOutcome{
			Type: lane.PublishFailed, Permanent: true, Failure: runlane.NewFailure("gone", "The queue is gone.", nil),
		}
	}
	return outcomes, nil
}

// A run that was resumed and waits again, and one whose wakeup was requeued and given up again, stand behind the cursor again.
func TestBulk_WhatMatchesAgain_IsLeftOut(t *testing.T) {
	t.Parallel()
	for _, requeue := range []bool{false, true} {
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		clock := func() time.Time { now = now.Add(time.Millisecond); return now }
		transport := &goneTransport{memlane.NewTransport(nil), requeue}
		l := newLane(t, memlane.NewStorage(&memlane.StorageOptions{Now: clock}), transport)
		task := runlane.NewTask[int]("t", &runlane.TaskOptions[int]{Retry: runlane.Retry{
			MaxAttempts: 20, NoJitter: true, Backoff: runlane.Exponential{Base: time.Hour, Max: time.Hour},
		}})
		rt := openQuiet(t, l, core.Options{World: &core.World{Now: clock}},
			task.Handle(func(context.Context, *runlane.Attempt, int) error { return errors.New("down") }))
		execute := func() {
			for range 2 {
				if _, err := rt.ExecuteNext(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		trigger(t, rt, task.With(1))
		trigger(t, rt, task.With(2))
		all := rt.Runs().ResumeAll
		if requeue {
			all, execute = rt.DeadLetters().RequeueAll, func() {}
		}
		execute()
		changed, at := 0, runlane.Cursor("")
		for calls := 0; calls == 0 || calls < 8 && at != ""; calls++ {
			now = now.Add(time.Second)
			r, err := all(t.Context(), &core.BulkOptions{AllRuns: true, After: at, Cap: 1})
			if err != nil {
				t.Fatal(err)
			}
			changed, at = changed+r.Changed, r.Next
			now = now.Add(time.Second)
			execute()
		}
		if changed != 2 || at != "" {
			t.Errorf("requeue %t: two runs were changed %d times; there is more: %t", requeue, changed, at != "")
		}
	}
}
