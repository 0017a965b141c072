package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

func sleepEnds(t *testing.T, h Harness) {
	calls := 0
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		calls++
		if err := a.Sleep(ctx, "cooling-off", time.Duration(calls)*time.Hour); err != nil { // later calls are longer
			return err
		}
		if err := a.Sleep(ctx, "cooling-off", time.Hour); !errors.Is(err, runlane.ErrValidationFailed) {
			return permanent("the name again: %v", err)
		}
		if err := a.Sleep(ctx, "until an operator comes", 10*time.Hour); err != nil {
			return err
		}
		if calls == 3 {
			return errNotYet // a retry does not sleep again
		}
		return nil
	})
	began := runlane.UTCMillis(s.now())
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	wait := run.Waiting
	if !wait.Timed() || wait == nil || wait.Until.Before(began.Add(time.Hour)) || !run.RunAt.Equal(wait.Until) {
		t.Fatalf("it waits for %+v, due at %s", wait, run.RunAt)
	}
	s.clock.Advance(time.Hour)
	run = s.execute(run)
	s.wantStatus(run, runlane.StatusReleased)
	s.clock.Advance(time.Minute)
	again, err := s.rt.Runs().Resume(t.Context(), run.ID, nil)
	s.must(err)
	run = s.execute(again)
	s.wantStatus(run, runlane.StatusRetrying) // it goes on behind the sleep that the operator has ended
	for run.Status.Active() {
		s.clock.Advance(time.Second)
		run = s.execute(run)
	}
	s.wantSucceeded(run)
	if calls != 4 || run.Counters.Failures != 1 || run.Counters.Releases != 2 {
		t.Errorf("%d calls, %+v", calls, run.Counters)
	}
	records, err := s.rt.Runs().Steps(t.Context(), run.ID)
	s.must(err)
	if len(records) != 2 || records[0].Kind != runlane.StepKindSleep || records[0].Attempt != 1 {
		t.Errorf("%+v", records)
	}
}

func sleepBranches(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, d := range []time.Duration{3 * time.Hour, time.Hour} {
			wg.Go(func() { errs[i] = a.Sleep(ctx, fmt.Sprint("branch/", i), d) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	began := s.now()
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	if run.RunAt.After(began.Add(2 * time.Hour)) {
		t.Errorf("it sleeps until %s", run.RunAt)
	}
	s.clock.Advance(time.Hour)
	run = s.execute(run)
	s.wantStatus(run, runlane.StatusReleased)
	s.clock.Advance(2 * time.Hour)
	s.wantSucceeded(s.execute(run))
}

func sleepBeside(t *testing.T, h Harness) {
	var slept, waited error
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		slept = a.Sleep(ctx, "night", 24*time.Hour)
		_, waited = runlane.NewSignal[int]("wake").Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Hour})
		return errors.Join(slept, a.Sleep(ctx, "week", 7*24*time.Hour), waited)
	})
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	s.clock.Advance(time.Minute)
	again, err := s.rt.Runs().Resume(t.Context(), run.ID, nil)
	s.must(err)
	again = s.execute(again)
	s.wantStatus(again, runlane.StatusReleased)
	if slept != nil || !runlane.Suspended(waited) || !again.RunAt.Equal(run.RunAt) {
		t.Errorf("resumed, the night is %v, the wait %v, and it is due at %s, not %s", slept, waited, again.RunAt, run.RunAt)
	}
}

func sleepBad(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		for what, err := range map[string]error{
			"no name":  a.Sleep(ctx, "", time.Hour),
			"too long": a.Sleep(ctx, "long", runlane.MaxReleaseDelay+1),
			"in a step": a.Do(ctx, "step", func(ctx context.Context) error {
				return a.Sleep(ctx, "within", time.Hour)
			}),
		} {
			if !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("%s: %v", what, err)
			}
		}
		return errors.Join(a.Sleep(ctx, "none", 0), a.Sleep(ctx, "past", -time.Hour))
	})
	run := s.attempts()
	s.wantSucceeded(run)
	if names := s.stepNames(run); len(names) != 0 {
		t.Errorf("recorded are %q", names)
	}
}

func sleepDropped(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		_ = a.Sleep(ctx, "night", time.Hour)
		return nil
	})
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	if !s.logs.contains("night") || !s.logs.contains("although it was suspended") {
		t.Error("the log does not name the sleep")
	}
	s.clock.Advance(time.Hour)
	s.wantSucceeded(s.execute(run))
}
