package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func operateResumeScenarios() []scenario {
	return []scenario{
		{"waiting runs are resumed at once", nil, resumeWaiting, false},
		{"what does not wait is not resumed", nil, resumeRefuses, false},
		{"a resumed run of a bounded queue waits for a slot", needsSlots, resumeBounded, false},
		{
			"a bulk resumption counts first, and skips what goes on",
			needsBoth(needsHistory, needsLeases),
			resumeAll,
			false,
		},
	}
}

// onceWaits is a task whose first attempt fails, or is released for a run with meta.
func onceWaits(
	id runlane.TaskID, options *runlane.TaskOptions[jobPayload],
) (*runlane.Task[jobPayload], runlane.Handler) {
	return job(id, options, func(_ context.Context, a *runlane.Attempt) error {
		switch {
		case a.Number > 1:
			return nil
		case len(a.Run.Meta) > 0:
			return runlane.Release(time.Hour, "not yet")
		default:
			return errors.New("once")
		}
	})
}

func resumeWaiting(t *testing.T, h Harness) {
	task, handler := onceWaits("scenario.resume", &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Hour)},
	})
	s := newScene(t, h, handler)
	actor := runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}
	for name, run := range map[runlane.Status]*runlane.Run{
		runlane.StatusScheduled: s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour}),
		runlane.StatusRetrying:  s.execute(s.trigger(task.With(jobPayload{}), nil)),
		runlane.StatusReleased: s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{
			Meta: operateMeta(),
		})),
	} {
		s.wantStatus(run, name)
		got, err := s.rt.Runs().Resume(t.Context(), run.ID, &core.ChangeOptions{Actor: actor, Reason: "enough"})
		s.must(err)
		s.wantStatus(got, runlane.StatusQueued)
		if got.Counters != run.Counters || got.Failure.Code != run.Failure.Code {
			t.Errorf("%s: resumed with %+v, %+v; it had %+v, %+v",
				name, got.Counters, got.Failure, run.Counters, run.Failure)
		}
		history := s.history(run.ID)
		event := history[len(history)-2]
		if body, ok := event.Body.(*runlane.RunResumed); !ok || body.Reason != "enough" || event.Actor != actor {
			t.Errorf("%s: the event is %+v", name, event)
		}
		s.execute(s.get(run.ID))
		if after := s.get(run.ID); after.Counters.Attempts != run.Counters.Attempts+1 {
			t.Errorf("%s: %d attempts after %d", name, after.Counters.Attempts, run.Counters.Attempts)
		}
	}
}

func resumeRefuses(t *testing.T, h Harness) {
	task, handler := job("scenario.resume-none", nil, succeed)
	s := newScene(t, h, handler)
	running := s.trigger(task.With(jobPayload{}), nil)
	s.die(running.ID)
	for _, run := range []*runlane.Run{s.trigger(task.With(jobPayload{}), nil), s.get(running.ID), s.succeeded(task)} {
		_, err := s.rt.Runs().Resume(t.Context(), run.ID, nil)
		e := s.wantCode(err, runlane.ErrValidationFailed)
		if !strings.Contains(e.Message, string(run.Status)) || e.RunID != run.ID || e.Hint == "" {
			t.Errorf("error is %v", e)
		}
	}
	s.wantCode(errorOf(s.rt.Runs().Resume(t.Context(), "run_absent", nil)), runlane.ErrRunNotFound)
	s.wantCode(errorOf(s.rt.Runs().Resume(t.Context(), "a:b", nil)), runlane.ErrValidationFailed)
	s.wantCode(errorOf(s.rt.Runs().Resume(t.Context(), running.ID, &core.ChangeOptions{
		Reason: strings.Repeat("r", runlane.MaxReasonBytes+1),
	})), runlane.ErrValidationFailed)
	s.wantCode(errorOf(s.rt.Runs().ResumeAll(t.Context(), &core.BulkOptions{RunFilter: core.RunFilter{
		Statuses: []runlane.Status{runlane.StatusRunning},
	}})), runlane.ErrValidationFailed)
}

func resumeBounded(t *testing.T, h Harness) {
	task, handler := explained("scenario.resume-bounded")
	s := newScene(t, h, handler)
	later := &runlane.TriggerOptions{Delay: time.Hour}
	run, free := s.trigger(task.With(jobPayload{}), later), s.trigger(task.With(jobPayload{}), later)
	busy := []*runlane.Run{s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)}
	for _, b := range busy {
		s.die(b.ID)
	}
	got, err := s.rt.Runs().Resume(t.Context(), run.ID, nil)
	s.must(err)
	s.wantStatus(got, runlane.StatusQueued) // as a delayed run of a bounded queue was before
	s.explains("resumed, and no slot is free", s.rt, run.ID, core.WaitSlot)
	s.must(errorOf(s.rt.Runs().Cancel(t.Context(), busy[0].ID, nil)))
	s.must(errorOf(s.rt.Runs().Cancel(t.Context(), busy[1].ID, nil)))
	s.clock.Advance(3 * time.Minute) // their leases are over
	s.settle()
	s.tick()
	s.explains("a slot is free", s.rt, run.ID, core.WaitReservation)
	s.must(errorOf(s.rt.Runs().Resume(t.Context(), free.ID, nil)))
	s.tickLate() // the hand-over has read an index
	s.explains("resumed, and a slot is free", s.rt, free.ID, core.WaitReservation)
	s.wantStatus(s.execute(s.get(free.ID)), runlane.StatusSucceeded)
}

func resumeAll(t *testing.T, h Harness) {
	task, handler := job("scenario.resume-all", nil, succeed)
	s := newScene(t, h, handler)
	for range 3 {
		s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	}
	kept := s.trigger(task.With(jobPayload{}), nil)
	options := core.BulkOptions{RunFilter: core.RunFilter{TaskID: "scenario.resume-all"}, Cap: 2, DryRun: true}
	resume := func(at runlane.Cursor) (*core.BulkResult, error) {
		o := options
		o.After = at
		return s.rt.Runs().ResumeAll(t.Context(), &o)
	}
	s.settle()
	s.wantCounts("dry run", s.pages(resume), 3, 0, 0)
	options.DryRun = false
	s.wantCounts("resumed", s.pages(resume), 3, 3, 0)
	s.settle()
	s.wantCounts("again", s.pages(resume), 0, 0, 0)
	s.wantStatus(s.get(kept.ID), runlane.StatusQueued)
}
