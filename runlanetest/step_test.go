package runlanetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/runlanetest"
)

func TestAdvance_Schedules_FireAtTheirTimes(t *testing.T) {
	t.Parallel()
	nightly := runlane.NewTask[string]("nightly", nil)
	var at []string
	var rt *runlanetest.Runtime
	rt = runlanetest.New(t, &runlanetest.Options{
		Handlers: []runlane.Handler{nightly.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			at = append(at, rt.Now().Format("Mon 15:04")+" for "+a.Run.Source.FireTime.Format("Mon 15:04"))
			return nil
		})},
		Schedules: []runlane.Schedule{{ID: "night", When: runlane.Cron("30 2 * * *").In("Europe/Berlin"), Call: nightly.With("")}},
		Start:     time.Date(2026, time.March, 27, 12, 0, 0, 0, time.UTC), // a Friday; Berlin's clocks go forward on Sunday
	})
	rt.Advance(3 * 24 * time.Hour)
	want := []string{"Sat 01:30 for Sat 01:30", "Sun 01:00 for Sun 01:00", "Mon 00:30 for Mon 00:30"}
	if !slices.Equal(at, want) {
		t.Errorf("fired at %q", at)
	}
	if histories := rt.Histories("nightly"); len(histories) != 3 {
		t.Errorf("%d histories", len(histories))
	} else {
		runlanetest.RequireTransitions(t, histories[2], "made by schedule night", "attempt 1 started", "attempt 1 succeeded")
	}
	if got := rt.Now(); !got.Equal(time.Date(2026, time.March, 30, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("the clock shows %s", got)
	}
}

func TestNew_WhatIsDueAtTheStart_DoesNotFire(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{
		Handlers:  []runlane.Handler{echo.Handle(succeed)},
		Schedules: []runlane.Schedule{{ID: "hourly", When: runlane.Every(time.Hour), Call: echo.With("x")}},
	})
	rt.FinishAll() // there is nothing to finish, and no schedule is waited for
	rt.Advance(time.Hour - time.Millisecond)
	if runs := rt.Histories(""); len(runs) != 0 {
		t.Errorf("%d runs before the hour was over", len(runs))
	}
	rt.Advance(time.Millisecond)
	if runs := rt.Histories(""); len(runs) != 1 {
		t.Errorf("%d runs after an hour", len(runs))
	}
}

func TestAdvance_StopsWhereSomethingIsDue_AndNotBehindItsEnd(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}})
	begin := rt.Now()
	early := rt.MustTrigger(echo.With("early"), &runlane.TriggerOptions{Delay: time.Hour})
	late := rt.MustTrigger(echo.With("late"), &runlane.TriggerOptions{Delay: 2 * time.Hour})
	rt.Settle()
	if h := rt.History(early.ID); h.Status != runlane.StatusScheduled {
		t.Errorf("after Settle it is %s", h.Status)
	}
	rt.Advance(2*time.Hour - time.Millisecond)
	if h := rt.History(early.ID); !h.FinishedAt.Equal(begin.Add(time.Hour)) {
		t.Errorf("%s at %s", h.Status, h.FinishedAt)
	}
	if h := rt.History(late.ID); h.Status != runlane.StatusScheduled {
		t.Errorf("a millisecond early it is %s", h.Status)
	}
	rt.Advance(time.Millisecond)
	if h := rt.History(late.ID); !h.FinishedAt.Equal(begin.Add(2 * time.Hour)) {
		t.Errorf("%s at %s", h.Status, h.FinishedAt)
	}
}

func TestFinishAll_BoundedQueue_OneAfterTheOther(t *testing.T) {
	t.Parallel()
	narrow := runlane.NewTask("narrow", &runlane.TaskOptions[string]{Queue: runlane.Queue{Name: "narrow", Concurrency: 1}})
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		narrow.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			if a.Number == 1 {
				return runlane.Release(time.Hour, "not yet")
			}
			return nil
		}),
	}})
	for range 5 {
		rt.MustTrigger(narrow.With("x"), nil)
	}
	rt.FinishAll()
	for _, h := range rt.Histories("") {
		runlanetest.RequireTransitions(t, h,
			"triggered", "attempt 1 started", "attempt 1 released for 1h: not yet", "attempt 2 started", "attempt 2 succeeded")
	}
	if n := len(rt.Histories("narrow")); n != 5 {
		t.Errorf("%d runs", n)
	}
}

func TestFinishAll_FollowUpsOfOtherTasks_AreExecuted(t *testing.T) {
	t.Parallel()
	var done []string
	count := runlane.NewTask[int]("count", nil)
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		count.Handle(func(ctx context.Context, a *runlane.Attempt, n int) error {
			if n == 0 {
				_, err := a.Trigger(ctx, echo.With("lift-off"), nil)
				return err
			}
			_, err := a.Trigger(ctx, count.With(n-1), &runlane.TriggerOptions{Delay: time.Second})
			return err
		}),
		echo.Handle(func(_ context.Context, _ *runlane.Attempt, text string) error {
			done = append(done, text)
			return nil
		}),
	}})
	begin := rt.Now()
	rt.MustTrigger(count.With(3), nil)
	rt.FinishAll()
	if !slices.Equal(done, []string{"lift-off"}) || rt.Now().Sub(begin) != 3*time.Second {
		t.Errorf("%q after %s", done, rt.Now().Sub(begin))
	}
}

func TestIdempotencyKey_IsFreedByTheRuntimesOwnTime(t *testing.T) {
	t.Parallel()
	once := runlane.NewTask("once", &runlane.TaskOptions[string]{
		IdempotencyKey: func(s string) string { return s }, IdempotencyTTL: 24 * time.Hour,
	})
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{once.Handle(succeed)}})
	first := rt.MustTrigger(once.With("k"), nil)
	rt.Advance(24*time.Hour - time.Millisecond)
	if again := rt.MustTrigger(once.With("k"), nil); again.ID != first.ID {
		t.Errorf("within its time the key made %s", again.ID)
	}
	rt.Advance(time.Millisecond)
	if again := rt.MustTrigger(once.With("k"), nil); again.ID == first.ID {
		t.Error("after its time the key returned the first run")
	}
}

func TestCancel_OfARunningAttempt_ReachesItAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, cancelsARunningAttempt) // a heartbeat would be waited for in its time
}

func cancelsARunningAttempt(t *testing.T) {
	var rt *runlanetest.Runtime
	causes := make(chan error, 1)
	rt = runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		echo.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
			if _, err := rt.Runs().Cancel(ctx, a.Run.ID, &core.ChangeOptions{Reason: "by mistake"}); err != nil {
				return err
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}),
	}})
	began := time.Now()
	run := rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "cancellation requested: by mistake", "cancelled")
	if cause := <-causes; !errors.Is(cause, runlane.ErrCancelRequested) {
		t.Errorf("the cause is %v", cause)
	}
	if took := time.Since(began); took != 0 {
		t.Errorf("it took %s, as if a heartbeat had been waited for", took)
	}
}

func TestCancel_OfAWaitingRun(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}})
	id := rt.MustTrigger(echo.With("x"), &runlane.TriggerOptions{Delay: time.Hour}).ID
	if _, err := rt.Runs().Cancel(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	runlanetest.RequireTransitions(t, rt.Finish(id), "triggered to begin in 1h", "cancelled")
}

func TestSynctest_TimeoutsAndSleeps_TakeNoTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := runlane.NewTask("slow", &runlane.TaskOptions[time.Duration]{
			Timeout: time.Hour, Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(24 * time.Hour)},
		})
		rt := runlanetest.New(t, &runlanetest.Options{Synctest: true, Handlers: []runlane.Handler{
			slow.Handle(func(ctx context.Context, a *runlane.Attempt, d time.Duration) error {
				select {
				case <-time.After(d / time.Duration(a.Number)):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}),
		}})
		begin := time.Now()
		run := rt.Finish(rt.MustTrigger(slow.With(90*time.Minute), nil).ID)
		runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 failed: task_timed_out, retry in 1d",
			"attempt 2 started", "attempt 2 succeeded")
		if took := time.Since(begin); took != time.Hour+24*time.Hour+45*time.Minute {
			t.Errorf("it took %s of the bubble's time", took)
		}
		if now := rt.Now(); !now.Equal(time.Now()) {
			t.Errorf("the clock shows %s", now)
		}
		rt.Advance(time.Hour)
		if took := time.Since(begin); took != 26*time.Hour+45*time.Minute {
			t.Errorf("after an hour more it took %s", took)
		}
	})
}

func TestFinishAll_ManyRunsThatNobodyExecutes_HideNone(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}})
	for range 250 {
		rt.MustTrigger(runlane.NewTask[string]("other", nil).With("x"), nil)
	}
	first := rt.MustTrigger(echo.With("x"), nil)
	second := rt.MustTrigger(echo.With("y"), &runlane.TriggerOptions{Delay: time.Minute})
	rt.FinishAll()
	for _, id := range []runlane.RunID{first.ID, second.ID} {
		runlanetest.RequireTransitions(t, rt.History(id), "triggered...", "attempt 1 started", "attempt 1 succeeded")
	}
	if took := rt.Now().Sub(first.CreatedAt); took != time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestFinishAll_ManyRunsAtTimesOfTheirOwn(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}})
	const runs = 200
	for i := range runs {
		rt.MustTrigger(echo.With("x"), &runlane.TriggerOptions{Delay: time.Duration(i) * time.Second})
	}
	rt.FinishAll()
	if histories := rt.Histories("echo"); len(histories) != runs || histories[runs-1].FinishedAt.Sub(histories[0].CreatedAt) != (runs-1)*time.Second {
		t.Errorf("%d runs", len(histories))
	}
}

// In a bubble the seconds for which the handler is waited for take no time either.
func TestFinish_OfAHandlerThatIgnoresAStop_WaitsForTheEndOfItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		rt := runlanetest.New(t, &runlanetest.Options{Synctest: true, Handlers: []runlane.Handler{
			echo.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
				if a.Number == 1 {
					<-released // whatever its context says
				}
				return nil
			}),
		}})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(runlane.ErrShutdown) })
		if _, err := rt.RunNow(ctx, echo.With("x"), nil); err != nil {
			t.Error(err)
		}
		close(released)
		left := rt.Histories("echo")[0]
		if left.Status != runlane.StatusReleased {
			t.Fatalf("it left the run %s", left.Status)
		}
		run := rt.Finish(left.ID)
		runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 released for 54s: shutdown",
			"attempt 2 started", "attempt 2 succeeded")
		if took := run.FinishedAt.Sub(run.CreatedAt); took != runlane.DefaultLease {
			t.Errorf("it took %s", took)
		}
	})
}
