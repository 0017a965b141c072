package scenarios

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func triggerDuplicates(t *testing.T, h Harness) {
	task, handler := job("scenario.duplicate", nil, succeed)
	s := newScene(t, h, handler)
	key := func(change func(*runlane.TriggerOptions)) *runlane.TriggerOptions {
		o := &runlane.TriggerOptions{IdempotencyKey: "order:1"}
		if change != nil {
			change(o)
		}
		return o
	}
	first := s.trigger(task.With(jobPayload{N: 1}), key(nil))
	s.wantSent("the first", first)
	duplicate := func(n int, differs bool) {
		t.Helper()
		got, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: n}), key(nil))
		s.must(err)
		if got.Outcome != runlane.TriggerReturnedExisting || got.Run.ID != first.ID || got.PayloadDiffers != differs {
			t.Fatalf("duplicate is %+v, want the first run with PayloadDiffers %v", got, differs)
		}
	}
	duplicate(1, false)
	duplicate(2, true)
	_, err := s.rt.Trigger(
		s.Context(),
		task.With(jobPayload{N: 2}),
		key(func(o *runlane.TriggerOptions) { o.StrictPayload = true }),
	)
	if e := s.wantCode(err, runlane.ErrValidationFailed); e.RunID != first.ID {
		t.Fatalf("error names run %q, want %q", e.RunID, first.ID)
	}
	s.wantStatus(s.execute(first), runlane.StatusSucceeded)
	duplicate(1, false) // kept after success
	if n := len(s.transport.TakePublished()); n != 0 {
		t.Fatalf("duplicates published %d wakeups", n)
	}
	s.clock.Advance(runlane.DefaultIdempotencyTTL + time.Hour)
	s.trigger(task.With(jobPayload{N: 1}), key(func(o *runlane.TriggerOptions) { o.IdempotencyKey = "order:2" }))
}

func triggerAfterFailure(t *testing.T, h Harness) {
	task, handler := job("scenario.retaken", nil, func(context.Context, *runlane.Attempt) error {
		return runlane.Permanent(runlane.ErrTaskFailed)
	})
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{IdempotencyKey: "order:1"}
	first := s.trigger(task.With(jobPayload{}), options)
	s.wantStatus(s.execute(first), runlane.StatusFailed)
	if second := s.trigger(task.With(jobPayload{}), options); second.ID == first.ID {
		t.Fatal("a failed run kept its key")
	}
}

func triggerRace(t *testing.T, h Harness) {
	task, handler := job("scenario.race", nil, succeed)
	s := newScene(t, h, handler)
	const callers = 8
	results := make([]*runlane.TriggerResult, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			result, err := s.rt.Trigger(s.Context(), task.With(jobPayload{}), &runlane.TriggerOptions{
				IdempotencyKey: "one",
			})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			results[i] = result
		})
	}
	group.Wait()
	created := 0
	for _, result := range results {
		if result == nil {
			t.FailNow()
		}
		if result.Outcome == runlane.TriggerCreated {
			created++
		}
		if result.Run.ID != results[0].Run.ID {
			t.Fatalf("two runs: %q and %q", result.Run.ID, results[0].Run.ID)
		}
	}
	if created != 1 {
		t.Fatalf("%d callers created the run", created)
	}
}

func triggerKeyTaken(t *testing.T, h Harness) {
	task, handler := job("scenario.taken", nil, succeed)
	s := newScene(t, h, handler)
	other, _ := s.second()
	options := &runlane.TriggerOptions{IdempotencyKey: "one"}
	var winner *runlane.TriggerResult
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			s.storage.script(func() { s.storage.onAppend = nil })
			var err error
			if winner, err = other.Trigger(s.Context(), task.With(jobPayload{}), options); err != nil {
				return nil, err
			}
			return next()
		}
	})
	got, err := s.rt.Trigger(s.Context(), task.With(jobPayload{}), options)
	s.must(err)
	if winner.Outcome != runlane.TriggerCreated || got.Outcome != runlane.TriggerReturnedExisting ||
		got.Run.ID != winner.Run.ID {
		t.Fatalf("got %+v, the winner made %+v", got, winner)
	}
}

func triggerSingleton(t *testing.T, h Harness) {
	task, handler := job("scenario.singleton", &runlane.TaskOptions[jobPayload]{
		SingletonKey: func(jobPayload) string { return "only" },
	}, succeed)
	s := newScene(t, h, handler)
	first := s.trigger(task.With(jobPayload{N: 1}), nil)
	_, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: 2}), nil)
	if e := s.wantCode(
		err,
		runlane.ErrStorageConflict,
	); e.Conflict != runlane.ConflictSingletonKey || e.RunID != first.ID {
		t.Fatalf("conflict is %+v, want the holder %q", e, first.ID)
	}
	held, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: 2}), &runlane.TriggerOptions{ReturnActive: true})
	s.must(err)
	if held.Outcome != runlane.TriggerReturnedExisting || held.Run.ID != first.ID || !held.PayloadDiffers {
		t.Fatalf("result is %+v, want the holder", held)
	}
	s.wantStatus(s.execute(first), runlane.StatusSucceeded)
	s.trigger(task.With(jobPayload{N: 3}), nil)
}

func triggerGivenID(t *testing.T, h Harness) {
	task, handler := job("scenario.given", nil, succeed)
	other := runlane.NewTask[jobPayload]("scenario.other", nil)
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{RunID: "import-17"}
	first := s.trigger(task.With(jobPayload{N: 1}), options)
	if first.ID != "import-17" {
		t.Fatalf("run id is %q", first.ID)
	}
	again, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: 1}), options)
	s.must(err)
	if again.Outcome != runlane.TriggerReturnedExisting || again.Run.ID != first.ID {
		t.Fatalf("second trigger is %+v", again)
	}
	_, err = s.rt.Trigger(s.Context(), task.With(jobPayload{N: 2}), options)
	s.wantCode(err, runlane.ErrValidationFailed)
	_, err = s.rt.Trigger(s.Context(), other.With(jobPayload{N: 1}), options)
	s.wantCode(err, runlane.ErrValidationFailed)
	s.wantHistory(first.ID, "created delivery_requested")
}

func triggerFromAttempt(t *testing.T, h Harness) {
	child := runlane.NewTask[jobPayload]("scenario.child", nil)
	var made *runlane.TriggerResult
	var self error
	var task *runlane.Task[jobPayload]
	task, handler := job("scenario.parent", &runlane.TaskOptions[jobPayload]{
		SingletonKey: func(jobPayload) string { return "only" },
	}, func(ctx context.Context, a *runlane.Attempt) error {
		_, self = a.Trigger(ctx, task.With(jobPayload{}), &runlane.TriggerOptions{ReturnActive: true})
		var err error
		made, err = a.Trigger(ctx, child.With(jobPayload{N: 1}), nil)
		return err
	})
	s := newScene(t, h, handler)
	parent := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{
		TraceCarrier: map[string]string{"traceparent": "00-9"},
	})
	s.wantStatus(s.execute(parent), runlane.StatusSucceeded)
	if e := s.wantCode(self, runlane.ErrStorageConflict); e.RunID != parent.ID {
		t.Fatalf("conflict names %q, want the attempt's own run", e.RunID)
	}
	run := s.get(made.Run.ID)
	if run.Source.Type != runlane.SourceTrigger || run.Source.RunID != parent.ID ||
		run.TraceCarrier["traceparent"] != "00-9" {
		t.Fatalf("child is %+v", run)
	}
}
