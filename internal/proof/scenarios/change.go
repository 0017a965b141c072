package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func operateCancelsWaiting(t *testing.T, h Harness) {
	task, handler := job("scenario.cancel", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if len(a.Run.Meta) > 0 {
				return runlane.Release(time.Hour, "not yet")
			}
			return errors.New("once")
		})
	s := newScene(t, h, handler)
	actor := runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}
	for name, run := range map[runlane.Status]*runlane.Run{
		runlane.StatusQueued:    s.trigger(task.With(jobPayload{}), nil),
		runlane.StatusScheduled: s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour}),
		runlane.StatusRetrying:  s.execute(s.trigger(task.With(jobPayload{}), nil)),
		runlane.StatusReleased: s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{
			Meta: operateMeta(),
		})),
	} {
		s.wantStatus(run, name)
		got, err := s.rt.Runs().Cancel(t.Context(), run.ID, &core.ChangeOptions{Actor: actor, Reason: "enough"})
		s.must(err)
		s.wantStatus(got, runlane.StatusCancelled)
		s.sameAsStored(got)
		history := s.history(run.ID)
		last := history[len(history)-1]
		if body, ok := last.Body.(*runlane.RunCancelled); !ok || body.Reason != "enough" || last.Actor != actor {
			t.Errorf("%s: the last event is %+v", name, last)
		}
		s.ignored(run, core.IgnoredTerminal)
	}
}

func operateCancelsRunning(t *testing.T, h Harness) {
	task, handler := job("scenario.cancel-running", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	for range 2 { // the second one changes nothing
		got, err := s.rt.Runs().Cancel(t.Context(), run.ID, &core.ChangeOptions{Reason: "enough"})
		s.must(err)
		s.wantStatus(got, runlane.StatusCancellationRequested)
		s.sameAsStored(got)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started cancellation_requested")
	last := s.history(run.ID)[4]
	if body, ok := last.Body.(*runlane.RunCancellationRequested); !ok || body.Reason != "enough" ||
		last.Actor != runlane.OperatorActor {
		t.Errorf("the request is %+v", last)
	}
	s.clock.Advance(time.Minute)
	s.tick()
	s.wantStatus(s.get(run.ID), runlane.StatusCancelled)
}

func operateCancelRefuses(t *testing.T, h Harness) {
	task, handler := job("scenario.cancel-ended", nil, succeed)
	s := newScene(t, h, handler)
	done := s.succeeded(task)
	_, err := s.rt.Runs().Cancel(t.Context(), done.ID, nil)
	if e := s.wantCode(
		err,
		runlane.ErrValidationFailed,
	); !strings.Contains(e.Message, "succeeded") || e.RunID != done.ID || e.Hint == "" {
		t.Errorf("error is %v", e)
	}
	s.wantCode(errorOf(s.rt.Runs().Cancel(t.Context(), "run_absent", nil)), runlane.ErrRunNotFound)
	s.wantCode(errorOf(s.rt.Runs().Cancel(t.Context(), "a:b", nil)), runlane.ErrValidationFailed)
}

func operateCancelRaces(t *testing.T, h Harness) {
	task, handler := job("scenario.cancel-race", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	raced := false
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if !raced { // a worker is faster
				raced = true
				s.die(run.ID)
			}
			return next()
		}
	})
	got, err := s.rt.Runs().Cancel(t.Context(), run.ID, nil)
	s.must(err)
	s.wantStatus(got, runlane.StatusCancellationRequested)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started cancellation_requested")

	always := s.trigger(task.With(jobPayload{}), nil)
	tries := 0
	s.storage.script(func() {
		s.storage.onAppend = func(*lane.AppendCommand, func() (*lane.Commit, error)) (*lane.Commit, error) {
			tries++
			return nil, runlane.NewConflict(runlane.ConflictEventSequence, "scripted")
		}
	})
	_, err = s.rt.Runs().Cancel(t.Context(), always.ID, nil)
	if e := s.wantCode(err, runlane.ErrStorageConflict); !e.Retryable || e.RunID != always.ID || tries != 5 {
		t.Errorf("after %d tries: %v", tries, e)
	}
}

// operateMeta is what an application left with its run.
func operateMeta() map[string]string { return map[string]string{"ticket": "42"} }

func operateReruns(t *testing.T, h Harness) {
	task, handler := job("scenario.rerun", nil, succeed)
	s := newScene(t, h, handler)
	source := s.execute(s.trigger(task.With(jobPayload{N: 7}), &runlane.TriggerOptions{
		Queue:          runlane.Queue{Name: "side"},
		ConcurrencyKey: "customer",
		IdempotencyKey: "once",
		SingletonKey:   "one",
		Priority:       5,
		Meta:           operateMeta(),
		TraceCarrier:   map[string]string{"traceparent": "old"},
	}))
	actor := runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}
	s.wantSent("the source", source)
	made, err := s.rt.Runs().Rerun(t.Context(), source.ID, &core.ChangeOptions{Actor: actor, Reason: "once more"})
	s.must(err)
	stored := s.get(made.ID)
	want := operateMeta()
	want["runlane.reason"] = "once more"
	switch {
	case stored.Source != runlane.Source{Type: runlane.SourceRerun, RunID: source.ID, CreatedAt: source.CreatedAt}:
		t.Errorf("source is %+v", stored.Source)
	case stored.Queue != "side" || stored.ConcurrencyKey != "customer" || stored.SingletonKey != "one" ||
		stored.Priority != 5 || stored.TaskID != source.TaskID:
		t.Errorf("the rerun is %+v", stored)
	case stored.IdempotencyKey != "" || stored.TraceCarrier != nil || stored.Counters != runlane.Counters{}:
		t.Errorf("the rerun took over too much: %+v", stored)
	case string(stored.Payload) != string(source.Payload) || !json.Valid(stored.Payload) ||
		!maps.Equal(stored.Meta, want):
		t.Errorf("payload %s, meta %v", stored.Payload, stored.Meta)
	case s.history(made.ID)[0].Actor != actor:
		t.Errorf("made by %+v", s.history(made.ID)[0].Actor)
	}
	s.wantSent("the rerun's wakeup", made)
	s.wantStatus(s.execute(made), runlane.StatusSucceeded)
	again, err := s.rt.Runs().Rerun(t.Context(), made.ID, nil)
	s.must(err)
	if again.ID == made.ID || again.Source.RunID != made.ID || !maps.Equal(again.Meta, operateMeta()) {
		t.Errorf("the rerun of the rerun is %+v", again)
	}
}

func operateRetries(t *testing.T, h Harness) {
	task, handler := job("scenario.manual", nil, func(context.Context, *runlane.Attempt) error {
		return errors.New("always")
	})
	fine, fineHandler := job("scenario.manual-fine", nil, succeed)
	s := newScene(t, h, handler, fineHandler)
	failed := s.execute(s.trigger(task.With(jobPayload{}), nil))
	made, err := s.rt.Runs().Retry(t.Context(), failed.ID, nil)
	s.must(err)
	want := runlane.Source{
		Type: runlane.SourceManualRetry, RunID: failed.ID, CreatedAt: failed.CreatedAt, OriginID: failed.ID,
	}
	if made.Source != want || made.ID == failed.ID {
		t.Fatalf("the retry is %+v", made)
	}
	last, err := s.rt.Runs().Retry(t.Context(), s.execute(made).ID, nil)
	s.must(err)
	if stored := s.get(last.ID); stored.Source.RunID != made.ID || stored.EffectID() != string(failed.ID) {
		t.Errorf("the retry of the retry is %+v", stored)
	}
	rerun, err := s.rt.Runs().Rerun(t.Context(), failed.ID, nil)
	s.must(err)
	if rerun.ID == made.ID || rerun.EffectID() != string(rerun.ID) {
		t.Fatalf("a rerun is new work, and has %+v", rerun.Source)
	}
	s.wantStatus(s.get(failed.ID), runlane.StatusFailed) // history never changes
	active := s.trigger(fine.With(jobPayload{}), nil)
	for name, call := range map[string]func() error{
		"an active run, queued":   func() error { return errorOf(s.rt.Runs().Rerun(t.Context(), active.ID, nil)) },
		"a retry of a queued run": func() error { return errorOf(s.rt.Runs().Retry(t.Context(), active.ID, nil)) },
		"a retry of a run, succeeded": func() error {
			return errorOf(s.rt.Runs().Retry(t.Context(), s.succeeded(fine).ID, nil))
		},
	} {
		e := s.wantCode(call(), runlane.ErrValidationFailed)
		if !strings.Contains(name, "succeeded") && !strings.Contains(e.Message, "queued") ||
			strings.Contains(name, "succeeded") && !strings.Contains(e.Message, "succeeded") || e.Hint == "" {
			t.Errorf("%s: %v", name, e)
		}
	}
	s.wantCode(errorOf(s.rt.Runs().Rerun(t.Context(), "run_absent", nil)), runlane.ErrRunNotFound)
}

func operateRetryKey(t *testing.T, h Harness) {
	task, handler := job("scenario.manual-key", nil, func(context.Context, *runlane.Attempt) error {
		return errors.New("always")
	})
	s := newScene(t, h, handler)
	for name, ttl := range map[string]time.Duration{"for a time": time.Hour, "while active": runlane.WhileActive} {
		options := &runlane.TriggerOptions{IdempotencyKey: name, IdempotencyTTL: ttl}
		retry := func(id runlane.RunID) (*runlane.Run, error) { return s.rt.Runs().Retry(t.Context(), id, nil) }
		source := s.execute(s.trigger(task.With(jobPayload{}), options))
		made, err := retry(source.ID)
		s.must(err)
		again, err := s.rt.Trigger(t.Context(), task.With(jobPayload{}), options)
		s.must(err)
		if again.Run.ID != made.ID || again.Outcome != runlane.TriggerReturnedExisting ||
			again.Run.Retention != source.Retention {
			t.Fatalf("%s: a trigger with the key of %s is %s of %+v", name, made.ID, again.Outcome, again.Run)
		}
		s.wantStatus(s.execute(made), runlane.StatusFailed)
		holder := s.trigger(task.With(jobPayload{}), options)
		e := s.wantCode(errorOf(retry(made.ID)), runlane.ErrStorageConflict)
		if e.Conflict != runlane.ConflictIdempotencyKey || e.RunID != holder.ID || e.Hint == "" {
			t.Fatalf("%s: error is %v of %q, want the holder %q", name, e, e.RunID, holder.ID)
		}
		same, err := retry(source.ID) // that retry was made before another run took the key
		s.must(err)
		if same.ID != made.ID {
			t.Errorf("%s: asked again, the retry is %s, not %s", name, same.ID, made.ID)
		}
		rerun, err := s.rt.Runs().Rerun(t.Context(), made.ID, nil)
		s.must(err)
		if rerun.IdempotencyKey != "" {
			t.Errorf("%s: a rerun has the key %q", name, rerun.IdempotencyKey)
		}
	}
}

func (s *scene) succeeded(task *runlane.Task[jobPayload]) *runlane.Run {
	s.Helper()
	return s.execute(s.trigger(task.With(jobPayload{}), nil))
}

func operateRerunsOnce(t *testing.T, h Harness) {
	task, handler := job("scenario.rerun-once", nil, succeed)
	s := newScene(t, h, handler)
	source := s.succeeded(task)
	lost := false
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			commit, err := next()
			if !lost && err == nil { // the answer of the first write is lost
				lost = true
				return nil, unavailableStorage("unknown")
			}
			return commit, err
		}
	})
	_, err := s.rt.Runs().Rerun(t.Context(), source.ID, nil)
	s.wantCode(err, runlane.ErrStorageUnavailable)
	made, err := s.rt.Runs().Rerun(t.Context(), source.ID, nil)
	s.must(err)
	second, _ := s.second()
	same, err := second.Runs().Rerun(t.Context(), source.ID, nil)
	s.must(err)
	if made.ID != same.ID || made.EventSequence != 2 || same.Source.RunID != source.ID {
		t.Fatalf("reruns are %+v and %+v", made, same)
	}
	told, err := second.Runs().Repeat(t.Context(), source.ID, runlane.SourceRerun, nil)
	s.must(err)
	if told.Run.ID != made.ID || told.Outcome != runlane.TriggerReturnedExisting {
		t.Errorf("asked again, the outcome is %s, run %s", told.Outcome, told.Run.ID)
	}
	s.wantCode(
		errorOf(second.Runs().Repeat(t.Context(), source.ID, runlane.SourceTrigger, nil)),
		runlane.ErrValidationFailed,
	)
	s.wantHistory(made.ID, "created delivery_requested")
}

func operateRerunSingleton(t *testing.T, h Harness) {
	task, handler := job("scenario.rerun-key", nil, succeed)
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{SingletonKey: "one"}
	source := s.execute(s.trigger(task.With(jobPayload{}), options))
	holder := s.trigger(task.With(jobPayload{}), options)
	_, err := s.rt.Runs().Rerun(t.Context(), source.ID, nil)
	if e := s.wantCode(
		err,
		runlane.ErrStorageConflict,
	); e.Conflict != runlane.ConflictSingletonKey || e.RunID != holder.ID {
		t.Fatalf("error is %v of %q, want the holder %q", e, e.RunID, holder.ID)
	}
	s.execute(holder)
	made, err := s.rt.Runs().Rerun(t.Context(), source.ID, nil)
	s.must(err)
	if made.SingletonKey != "one" {
		t.Fatalf("the rerun is %+v", made)
	}
}
