package scenarios

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func suspendScenarios() []scenario {
	return []scenario{
		{"a suspended run is explained and listed by what it waits for", needsHistory, suspendExplained, false},
		{"a blocked run waits for an operator and for nothing else", nil, suspendBlocked, false},
		{"an early wakeup of a wait that something may end is acknowledged", nil, suspendEarly, false},
		{"a wait that is over goes on by its time", needsLeases, suspendTimed, false},
		{"a wait that cannot be is a failure that says why", nil, suspendRefused, false},
	}
}

// suspends is a task whose first attempt waits, and whose second succeeds.
func suspends(
	id runlane.TaskID, wait func(now time.Time) *runlane.Waiting,
) (*runlane.Task[jobPayload], runlane.Handler) {
	return job(id, nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number > 1 {
			return nil
		}
		return &runlane.ReleaseError{Reason: "not yet", Waiting: wait(a.Run.StartedAt)}
	})
}

func approval(prompt string, limit time.Duration) func(time.Time) *runlane.Waiting {
	return func(now time.Time) *runlane.Waiting {
		w := &runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"}, Prompt: prompt,
		}
		if prompt != "" {
			w.For = append(w.For, runlane.WaitingInput)
		}
		if limit > 0 {
			w.For, w.Until = append(w.For, runlane.WaitingTime), now.Add(limit)
		}
		return w
	}
}

func suspendExplained(t *testing.T, h Harness) {
	for wait, c := range map[core.Wait]struct {
		kind  runlane.WaitingFor
		waits func(time.Time) *runlane.Waiting
		says  string
	}{
		core.WaitSignal: {runlane.WaitingSignal, approval("", time.Hour), "the signal approved."},
		core.WaitInput:  {runlane.WaitingInput, approval("Approve?", 0), "The question is: Approve?"},
		core.WaitRuns: {runlane.WaitingEnds, func(time.Time) *runlane.Waiting {
			return &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: 3}
		}, "3 other runs"},
	} {
		task, handler := suspends(runlane.TaskID("scenario.suspended-"+string(wait)), c.waits)
		s := newScene(t, h, handler)
		run := s.execute(s.trigger(task.With(jobPayload{}), nil))
		s.wantStatus(run, runlane.StatusReleased)
		e := s.explains("it waits", s.rt, run.ID, wait)
		if !strings.Contains(e.Next, c.says) || !e.Waiting.Has(c.kind) {
			t.Errorf("%s: %+v does not say %q", wait, e, c.says)
		}
		s.settle()
		page, err := s.rt.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{Waiting: c.kind}})
		s.must(err)
		if len(page.Items) != 1 || page.Items[0].ID != run.ID || !page.Items[0].Waiting.Has(c.kind) {
			t.Errorf("runs that wait for %s: %+v", c.kind, page.Items)
		}
		page, err = s.rt.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{
			Waiting: runlane.WaitingBlocked,
		}})
		s.must(err)
		if len(page.Items) != 0 {
			t.Errorf("blocked runs: %+v", page.Items)
		}
		s.wantCode(errorOf(s.rt.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{
			Waiting: "weather",
		}})), runlane.ErrValidationFailed)
	}
}

func suspendBlocked(t *testing.T, h Harness) {
	task, handler := job("scenario.blocked", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number > 1 {
			return nil
		}
		return runlane.Block("raise the quota")
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	e := s.explains("it is blocked", s.rt, run.ID, core.WaitBlocked)
	if !strings.Contains(e.Next, "raise the quota") || !run.RunAt.Equal(runlane.FarMoment()) {
		t.Errorf("%+v, due at %s", e, run.RunAt)
	}
	s.clock.Advance(365 * 24 * time.Hour)
	s.tick()
	s.ignored(run, core.IgnoredNotDue)
	got, err := s.rt.Runs().Resume(t.Context(), run.ID, &core.ChangeOptions{Reason: "raised"})
	s.must(err)
	if got.Waiting != nil {
		t.Errorf("resumed, it waits for %+v", got.Waiting)
	}
	s.wantStatus(s.execute(got), runlane.StatusSucceeded)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started released resumed delivery_requested "+
		"lease_claimed started succeeded")
}

func suspendEarly(t *testing.T, h Harness) {
	task, handler := suspends("scenario.suspended-early", approval("", 10*time.Minute))
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Minute)
	s.ignored(run, core.IgnoredNotDue)
	if sent := s.transport.TakeDelayed(); len(sent) != 0 {
		t.Errorf("sent for a wait that something else may end: %+v", sent)
	}
}

func suspendTimed(t *testing.T, h Harness) {
	task, handler := suspends("scenario.suspended-timed", approval("", 10*time.Minute))
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(10*time.Minute - time.Second)
	s.tick()
	s.wantStatus(s.get(run.ID), runlane.StatusReleased)
	s.clock.Advance(time.Second)
	s.tick()
	got := s.get(run.ID)
	s.wantStatus(got, runlane.StatusQueued)
	if got.Waiting != nil {
		t.Errorf("due, it waits for %+v", got.Waiting)
	}
	s.wantStatus(s.execute(got), runlane.StatusSucceeded)
}

func suspendRefused(t *testing.T, h Harness) {
	task, handler := suspends("scenario.suspended-badly", func(time.Time) *runlane.Waiting {
		return &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: make([]string, 33)}
	})
	s := newScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusFailed)
	if run.Failure.Code != runlane.ErrValidationFailed || !strings.Contains(run.Failure.Message, "33 names") {
		t.Errorf("the failure is %+v", run.Failure)
	}
}
