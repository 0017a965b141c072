package scenarios

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func memoryScenarios() []scenario {
	return []scenario{
		{"a retry goes on behind what the failed run remembers", needsBoth(needsSteps, needsMail), retryRemembers, false},
		{"a retry asks again where no answer came in time", needsBoth(needsSteps, needsMail), retryAsksAgain, false},
		{"a retry without its failed run's memory starts nothing", needsBoth(needsSteps, needsPruning), retryForgotten, false},
	}
}

func (s *scene) retry(run *runlane.Run) *runlane.Run {
	s.Helper()
	s.wantStatus(run, runlane.StatusFailed)
	made, err := s.rt.Runs().Retry(s.Context(), run.ID, nil)
	s.must(err)
	return made
}

func retryRemembers(t *testing.T, h Harness) {
	var did []string
	broken := true
	task, handler := job("scenario.remembers", nil, func(ctx context.Context, a *runlane.Attempt) error {
		step := func(name string) error {
			return a.Do(ctx, name, func(context.Context) error {
				did = append(did, name+" "+a.EffectID())
				return nil
			})
		}
		if err := step("reserve"); err != nil {
			return err
		}
		n, err := double.Call(ctx, a, 4, nil)
		if err != nil {
			return err
		}
		d, err := approved.Wait(ctx, a, nil)
		if err != nil {
			return err
		}
		if err := step("charge by " + d.By); err != nil || n != 8 {
			return err
		}
		if broken {
			return runlane.Permanent(errors.New("no paper"))
		}
		late, err := withdrawn.Wait(ctx, a, nil)
		if err != nil {
			return err
		}
		return step("mail, " + late.By)
	})
	s := newScene(t, h, handler, doubling())
	first := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.execute(s.children(first.ID, 1)[0])
	first = s.execute(s.get(first.ID))
	s.signal(first.ID, withdrawn.With(decision{By: "eve"}), nil) // no wait takes it before the end
	s.signal(first.ID, approved.With(decision{By: "ada"}), nil)
	first = s.execute(s.get(first.ID))
	second := s.execute(s.retry(first))
	broken = false
	third := s.execute(s.retry(second))
	s.wantStatus(third, runlane.StatusSucceeded)
	key := " " + string(first.ID)
	if want := []string{"reserve" + key, "charge by ada" + key, "mail, eve" + key}; !slices.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
	s.wantStatus(s.get(first.ID), runlane.StatusFailed)
	rerun, err := s.rt.Runs().Rerun(t.Context(), second.ID, nil)
	s.must(err)
	s.execute(rerun)
	if len(did) != 4 || did[3] != "reserve "+string(rerun.ID) {
		t.Errorf("a rerun starts over: %q", did)
	}
}

func retryAsksAgain(t *testing.T, h Harness) {
	var did []string
	task, handler := job("scenario.asks-again", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, err := withdrawn.Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Minute})
		if errors.Is(err, runlane.ErrWaitTimedOut) { // went on without an answer
			err = a.Do(ctx, "remind", func(context.Context) error { did = append(did, "remind"); return nil })
		}
		if err != nil {
			return err
		}
		d, err := approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Hour})
		if errors.Is(err, runlane.ErrWaitTimedOut) {
			return runlane.Permanent(err)
		}
		if err == nil {
			did = append(did, d.By)
		}
		return err
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Minute)
	run = s.execute(run)
	s.clock.Advance(time.Hour)
	retry := s.execute(s.retry(s.execute(run)))
	s.wantStatus(retry, runlane.StatusReleased)
	if retry.Waiting.Until.Before(retry.CreatedAt.Add(time.Hour)) || !slices.Equal(retry.Waiting.Names, []string{"approved"}) {
		t.Errorf("it waits for %+v", retry.Waiting)
	}
	s.signal(retry.ID, approved.With(decision{By: "ada"}), nil)
	s.wantStatus(s.execute(s.get(retry.ID)), runlane.StatusSucceeded)
	if want := []string{"remind", "ada"}; !slices.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
}

func retryForgotten(t *testing.T, h Harness) {
	did := 0
	task, handler := job("scenario.forgotten", nil, func(ctx context.Context, a *runlane.Attempt) error {
		if err := a.Do(ctx, "charge", func(context.Context) error { did++; return nil }); err != nil {
			return err
		}
		return runlane.Permanent(errors.New("no paper"))
	})
	s := newScene(t, h, handler)
	first := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Hour)
	second := s.execute(s.retry(first))
	s.clock.Advance(time.Minute)
	prune := func(olderThan time.Duration) {
		_, err := s.rt.Runs().Prune(s.Context(), &core.PruneOptions{OlderThan: olderThan, Limit: 1})
		s.must(err)
	}
	prune(30 * time.Minute)
	s.wantStatus(s.get(first.ID), runlane.StatusFailed) // its retry may be retried, too
	s.clock.Advance(time.Hour)
	prune(30 * time.Minute)
	third := s.execute(s.retry(second))
	if third.Failure.Code != runlane.ErrRunNotFound || did != 1 {
		t.Errorf("it charged %d times, and failed with %+v", did, third.Failure)
	}
}
