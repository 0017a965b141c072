package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// signalOneWait has two rounds, each with its inbox, and waits for signals that other waits are for: of the same
// attempt and of an earlier one, answered and too late.
func signalOneWait(t *testing.T, h Harness) {
	got, rounds := &heardOf{}, []string{"round/1", "round/2"}
	task, handler := job("scenario.signal-one-wait", nil, func(ctx context.Context, a *runlane.Attempt) error {
		for _, name := range rounds {
			d, err := approved.Wait(ctx, a, &runlane.WaitOptions{Name: name})
			if err != nil {
				return err
			}
			got.add("%s", d.By)
		}
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	for _, name := range []string{"approved", "round/1"} {
		s.signal(run.ID, approved.Named(name).With(decision{By: name}), nil)
	}
	waits := s.execute(run)
	if waits.Status != runlane.StatusReleased || len(waits.Waiting.Names) != 1 || waits.Waiting.Names[0] != "round/2" {
		t.Errorf("after one answer it is %s and waits for %+v", waits.Status, waits.Waiting)
	}
	s.signal(run.ID, approved.Named("round/2").With(decision{By: "round/2"}), nil)
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "round/1", "round/1", "round/2")

	var faults []error
	options := &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second)},
	}
	task, handler = job("scenario.signal-two-waits", options, func(ctx context.Context, a *runlane.Attempt) error {
		var yes, no *decision
		either := []runlane.Case{approved.Into(&yes), withdrawn.Into(&no)}
		late := approved.Named("late")
		one := func(name string, signal *runlane.Signal[decision]) error {
			return runlane.WaitAny(ctx, a, &runlane.WaitOptions{Name: name, Timeout: runlane.NoWait}, signal.Into(&yes))
		}
		if a.Number == 1 {
			err := runlane.WaitAny(ctx, a, &runlane.WaitOptions{Name: "either"}, either...)
			if timedOut := one("too late", late); !errors.Is(timedOut, runlane.ErrWaitTimedOut) || err != nil {
				t.Errorf("the first waits: %v, %v", err, timedOut)
			}
			faults = append(faults, one("again", approved), one("other", withdrawn), one("later", late))
			return errors.New("once more")
		}
		faults = append(faults, one("again", approved), one("later", late))
		if err := one("other", withdrawn); !errors.Is(err, runlane.ErrWaitTimedOut) {
			t.Errorf("a wait for what answered none: %v", err)
		}
		return nil
	})
	s = newScene(t, h, handler)
	run = s.trigger(task.With(jobPayload{}), nil)
	s.signal(run.ID, approved.With(decision{By: "ada"}), nil)
	s.execute(run)
	s.clock.Advance(time.Second)
	s.tick()
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	if len(faults) != 5 {
		t.Fatalf("%d waits for the signals of others: %v", len(faults), faults)
	}
	for i, err := range faults {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("wait %d for a signal of another: %v", i, err)
		}
	}
}

// signalQuestions has two branches that each ask a person: the run shows both questions.
func signalQuestions(t *testing.T, h Harness) {
	task, handler := job("scenario.signal-questions", nil, func(ctx context.Context, a *runlane.Attempt) error {
		_, first := approved.Wait(ctx, a, &runlane.WaitOptions{Prompt: "Approve?", Timeout: time.Hour})
		_, second := withdrawn.Wait(ctx, a, &runlane.WaitOptions{Prompt: "Or withdraw it?"})
		return errors.Join(first, second)
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	want := []runlane.Question{
		{Name: "approved", Prompt: "Approve?"}, {Name: "withdrawn", Prompt: "Or withdraw it?"},
	}
	if !slices.Equal(run.Waiting.Questions, want) || run.Waiting.Prompt != "Approve?" {
		t.Errorf("it asks %+v", run.Waiting)
	}
	s.sameAsStored(run)
	explained, err := s.rt.Runs().Explain(t.Context(), run.ID)
	s.must(err)
	for _, q := range want {
		if !strings.Contains(explained.Next, q.Prompt) {
			t.Errorf("%q does not ask %q", explained.Next, q.Prompt)
		}
	}
	s.signal(run.ID, withdrawn.With(decision{}), nil)
	again := s.execute(s.get(run.ID))
	if again.Waiting.Prompt != "Approve?" || again.Waiting.Questions != nil {
		t.Errorf("after one answer it asks %+v", again.Waiting)
	}
}
