package scenarios

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func outcomeBeatFails(t *testing.T, h Harness) {
	task, handler := job("scenario.shaky", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		return wait(ctx, 2*time.Minute)
	})
	s := newVirtualScene(t, h, handler)
	failures := 0
	s.storage.script(func() {
		s.storage.onBeat = func() error {
			if failures++; failures <= 2 {
				return unavailableStorage("")
			}
			return nil
		}
	})
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	if lines := s.logs.lines(t, "lease was not renewed"); len(lines) != 2 || failures < 3 {
		t.Fatalf("%d heartbeats, log lines %v", failures, lines)
	}
}

// The scenarios below run in a bubble: their clock is the bubble's.

func newVirtualScene(t *testing.T, h Harness, handlers ...runlane.Handler) *scene {
	t.Helper()
	return openScene(t, h, core.Options{Handlers: handlers, World: &core.World{}}, nil)
}

func outcomeHeartbeats(t *testing.T, h Harness) {
	task, handler := job("scenario.long", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		return wait(ctx, 10*time.Minute)
	})
	s := newVirtualScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	beats := 0
	last := run.StartedAt
	for _, record := range s.history(run.ID) {
		if record.Type() != runlane.EventLeaseHeartbeat {
			continue
		}
		beats++
		if gap := record.OccurredAt.Sub(last); gap > 25*time.Second || gap < 15*time.Second {
			t.Errorf("heartbeat %d came after %s", beats, gap)
		}
		last = record.OccurredAt
	}
	if beats < 24 || beats > 38 || run.Counters.Attempts != 1 {
		t.Fatalf("%d heartbeats in ten minutes, %d attempts", beats, run.Counters.Attempts)
	}
}

// wait is a handler's work.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func outcomeCancelNoticed(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.notice", nil, func(ctx context.Context, a *runlane.Attempt) error {
		s.clock.Advance(time.Since(s.clock.Now()))
		s.change(a.Run.ID, &runlane.RunCancellationRequested{})
		asked := time.Now()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), runlane.ErrCancelRequested) || time.Since(asked) > 25*time.Second {
			return fmt.Errorf("cause is %w after %s", context.Cause(ctx), time.Since(asked))
		}
		return ctx.Err()
	})
	s = newVirtualScene(t, h, handler)
	s.wantStatus(s.execute(s.trigger(task.With(jobPayload{}), nil)), runlane.StatusCancelled)
}

func outcomeCancelHere(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.cancel-here", nil, func(ctx context.Context, a *runlane.Attempt) error {
		run, err := s.rt.Runs().Cancel(ctx, a.Run.ID, &core.ChangeOptions{Reason: "enough"})
		if err != nil || run.Status != runlane.StatusCancellationRequested ||
			!errors.Is(context.Cause(ctx), runlane.ErrCancelRequested) {
			return fmt.Errorf("run %+v, error %w, cause %w", run, err, context.Cause(ctx))
		}
		return ctx.Err()
	})
	s = newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusCancelled)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started cancellation_requested cancelled")
}

func outcomeTakeoverNoticed(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.noticed-takeover", nil, func(ctx context.Context, a *runlane.Attempt) error {
		// for a process whose clock is far ahead the lease is over
		s.clock.Advance(time.Since(s.clock.Now()) + time.Hour)
		s.die(a.Run.ID)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), runlane.ErrLeaseLost) {
			return context.Cause(ctx)
		}
		return ctx.Err()
	})
	s = newVirtualScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.ignored(run, core.IgnoredAbandoned)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started lease_claimed started")
}

func outcomeCancelRead(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.read", nil, func(ctx context.Context, a *runlane.Attempt) error {
		s.clock.Advance(time.Since(s.clock.Now()))
		s.change(a.Run.ID, &runlane.RunCancellationRequested{})
		asked := time.Now()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), runlane.ErrCancelRequested) || time.Since(asked) > 7*time.Second {
			return fmt.Errorf("cause is %w after %s", context.Cause(ctx), time.Since(asked))
		}
		return ctx.Err()
	})
	s = newVirtualScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), &core.DeliveryOptions{
		Deadline: time.Now().Add(15 * time.Minute),
	})
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusCancelled)
	if hasType(s.history(run.ID), runlane.EventLeaseHeartbeat) {
		t.Fatal("a heartbeat was written before a deadline")
	}
}

func outcomeUnresponsive(t *testing.T, h Harness) {
	stubborn := make(chan struct{})
	task, handler := job("scenario.stubborn", &runlane.TaskOptions[jobPayload]{
		Timeout: time.Second, Retry: runlane.Retry{MaxAttempts: 2},
	}, func(context.Context, *runlane.Attempt) error {
		<-stubborn
		return nil
	})
	s := newVirtualScene(t, h, handler)
	began := time.Now()
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	if took := time.Since(began); took > 10*time.Second {
		t.Fatalf("the delivery took %s", took)
	}
	s.wantStatus(run, runlane.StatusRetrying)
	if run.Failure.Code != runlane.ErrTaskTimedOut {
		t.Fatalf("failure is %+v", run.Failure)
	}
	if len(s.logs.lines(t, "handler did not return when its context ended; its goroutine is left running")) != 1 {
		t.Fatal("no caller was told")
	}
	close(stubborn)
}
