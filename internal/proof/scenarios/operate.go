package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func operateScenarios() []scenario {
	keys := needsBoth(needsIdempotency, needsSingleton)
	return slices.Concat([]scenario{
		{
			"an option that cannot be is named before anything is read or written",
			needsDeadLetters,
			operateRefuses,
			false,
		},
		{"runs are listed by every filter, page by page", needsHistory, operateLists, false},
		{"active and current runs are found by their keys", keys, operateFinds, false},
		{"an idempotency key is reset once its run has ended", needsIdempotency, operateResets, false},
		{"attempts tell the outcome of each", needsHistory, operateAttempts, false},
		{"events resume behind any of them in both directions", needsHistory, operateEvents, false},
		{"a feed follows a run to its end", needsHistory, operateFollows, false},
		{
			"a feed ends with its context, its runtime or its run",
			needsBoth(needsHistory, needsPruning),
			operateFeedEnds,
			false,
		},
		{"waiting runs are cancelled at once", nil, operateCancelsWaiting, false},
		{"a running run is asked to stop, once", nil, operateCancelsRunning, false},
		{"a cancellation of what cannot be cancelled names the status", nil, operateCancelRefuses, false},
		{"a cancellation that loses a race looks again", nil, operateCancelRaces, false},
		{"a rerun inherits and names its source", keys, operateReruns, false},
		{"a manual retry takes a failed run", nil, operateRetries, false},
		{"a manual retry takes over the idempotency key", needsIdempotency, operateRetryKey, false},
		{"a rerun asked for twice is made once", nil, operateRerunsOnce, false},
		{"a rerun never gets around a held singleton key", needsSingleton, operateRerunSingleton, false},
	}, operateResumeScenarios(), suspendScenarios(), operateBulkScenarios(), explainScenarios())
}

func operateRefuses(t *testing.T, h Harness) {
	task, handler := job("scenario.refuse", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	runs, letters, ctx := s.rt.Runs(), s.rt.DeadLetters(), t.Context()
	appended, reads := len(s.storage.appended()), s.storage.readCount()
	big := strings.Repeat("r", runlane.MaxReasonBytes+1)
	feed := func(o *core.EventOptions) error {
		for _, err := range runs.Events(ctx, run.ID, o) {
			return err
		}
		return nil
	}
	for option, calls := range map[string][]func() error{
		"ListOptions.Limit": {
			func() error { return errorOf(runs.List(ctx, &core.ListOptions{Limit: -1})) },
			func() error { return errorOf(letters.List(ctx, &core.ListOptions{Limit: runlane.MaxPageLimit + 1})) },
		},
		"ListOptions.Statuses": {func() error {
			return errorOf(runs.List(ctx, &core.ListOptions{
				RunFilter: core.RunFilter{Statuses: []runlane.Status{"odd"}},
			}))
		}},
		"ListOptions.TaskID": {
			func() error {
				return errorOf(runs.List(ctx, &core.ListOptions{RunFilter: core.RunFilter{TaskID: "a:b"}}))
			},
		},
		"EventOptions.Follow": {func() error { return feed(&core.EventOptions{Follow: true, Descending: true}) }},
		"EventOptions.After":  {func() error { return feed(&core.EventOptions{After: "made up"}) }},
		"ChangeOptions.Reason": {
			func() error { return errorOf(runs.Cancel(ctx, run.ID, &core.ChangeOptions{Reason: big})) },
			func() error { return errorOf(runs.Rerun(ctx, run.ID, &core.ChangeOptions{Reason: big})) },
			func() error { return letters.Requeue(ctx, run.ID, &core.ChangeOptions{Reason: big}) },
		},
		"ChangeOptions.Actor": {
			func() error {
				return errorOf(runs.Cancel(ctx, run.ID, &core.ChangeOptions{Actor: runlane.Actor{Type: "robot"}}))
			},
			func() error {
				return errorOf(runs.Retry(ctx, run.ID, &core.ChangeOptions{Actor: runlane.Actor{ID: "me"}}))
			},
		},
		"BulkOptions has no filter": {
			func() error { return errorOf(runs.CancelAll(ctx, nil)) },
			func() error { return errorOf(letters.RequeueAll(ctx, &core.BulkOptions{})) },
		},
		"BulkOptions.AllRuns": {func() error {
			return errorOf(runs.RerunAll(ctx, &core.BulkOptions{
				AllRuns:   true,
				RunFilter: core.RunFilter{Queue: "default"},
			}))
		}},
		"BulkOptions.Cap": {
			func() error { return errorOf(runs.RetryAll(ctx, &core.BulkOptions{AllRuns: true, Cap: -1})) },
		},
		"BulkOptions.Statuses": {
			func() error {
				return errorOf(runs.CancelAll(ctx, &core.BulkOptions{
					RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusFailed}},
				}))
			},
			func() error {
				return errorOf(runs.RetryAll(ctx, &core.BulkOptions{
					RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusCancelled}},
				}))
			},
		},
		"BulkOptions.After": {
			func() error { return errorOf(runs.CancelAll(ctx, &core.BulkOptions{AllRuns: true, After: "made up"})) },
		},
		"PruneOptions.OlderThan": {
			func() error { return errorOf(runs.Prune(ctx, nil)) },
			func() error { return errorOf(runs.Prune(ctx, &core.PruneOptions{OlderThan: -1})) },
		},
		"PruneOptions.Limit": {
			func() error { return errorOf(runs.Prune(ctx, &core.PruneOptions{OlderThan: 1, Limit: 501})) },
		},
		"PruneOptions.Statuses": {func() error {
			return errorOf(runs.Prune(ctx, &core.PruneOptions{OlderThan: 1, Statuses: []runlane.Status{"queued"}}))
		}},
		"PruneOptions.After": {
			func() error { return errorOf(runs.Prune(ctx, &core.PruneOptions{OlderThan: 1, After: "made up"})) },
		},
		"singleton key is empty": {func() error { return errorOf(runs.FindActive(ctx, "scenario.refuse", "")) }},
		"idempotency key has": {
			func() error { return s.rt.IdempotencyKeys().Reset(ctx, "scenario.refuse", strings.Repeat("k", 600)) },
		},
		"idempotency key is empt": {func() error { return errorOf(runs.FindCurrent(ctx, "scenario.refuse", "")) }},
	} {
		for i, call := range calls {
			e := s.wantCode(call(), runlane.ErrValidationFailed)
			if !strings.Contains(e.Message, option) || e.Hint == "" {
				t.Errorf("%s, call %d: %v", option, i+1, e)
			}
		}
	}
	if len(s.storage.appended()) != appended || s.storage.readCount() != reads {
		t.Errorf(
			"%d appends and %d reads, want %d and %d",
			len(s.storage.appended()),
			s.storage.readCount(),
			appended,
			reads,
		)
	}
}

func operateLists(t *testing.T, h Harness) {
	task, handler := job("scenario.list", nil, succeed)
	other, otherHandler := job("scenario.list-other", nil, func(context.Context, *runlane.Attempt) error {
		return runlane.Permanent(errors.New("always"))
	})
	s := newScene(t, h, handler, otherHandler)
	var all, queued []runlane.RunID
	for range 3 {
		run := s.trigger(task.With(jobPayload{}), nil)
		all, queued = append(all, run.ID), append(queued, run.ID)
	}
	failed := s.execute(s.trigger(other.With(jobPayload{}), &runlane.TriggerOptions{
		Queue: runlane.Queue{Name: "elsewhere"},
	}))
	again, err := s.rt.Runs().Retry(t.Context(), failed.ID, nil)
	s.must(err)
	all = append(all, failed.ID, again.ID)
	list := func(f core.RunFilter) []runlane.RunID {
		var ids []runlane.RunID
		for summary, err := range s.rt.Runs().All(t.Context(), &core.ListOptions{RunFilter: f, Limit: 2}) {
			s.must(err)
			ids = append(ids, summary.ID)
		}
		return ids
	}
	for name, c := range map[string]struct {
		filter core.RunFilter
		want   []runlane.RunID
	}{
		"all":     {core.RunFilter{}, all},
		"a task":  {core.RunFilter{TaskID: "scenario.list"}, queued},
		"a queue": {core.RunFilter{Queue: "elsewhere"}, []runlane.RunID{failed.ID, again.ID}},
		"statuses": {
			core.RunFilter{Statuses: []runlane.Status{runlane.StatusFailed, runlane.StatusCancelled}},
			[]runlane.RunID{failed.ID},
		},
		"source runs": {core.RunFilter{SourceRunID: failed.ID}, []runlane.RunID{again.ID}},
		"a schedule":  {core.RunFilter{ScheduleID: "nightly"}, nil},
		"two of them": {
			core.RunFilter{Queue: "elsewhere", Statuses: []runlane.Status{runlane.StatusQueued}},
			[]runlane.RunID{again.ID},
		},
	} {
		want := sorted(c.want)
		s.until("the list of "+name, func() bool { return slices.Equal(sorted(list(c.filter)), want) })
	}
	page, err := s.rt.Runs().List(t.Context(), &core.ListOptions{Limit: 2})
	s.must(err)
	_, err = s.rt.Runs().List(t.Context(), &core.ListOptions{
		Limit:     2,
		After:     page.Next,
		RunFilter: core.RunFilter{Queue: "elsewhere"},
	})
	s.wantCode(err, runlane.ErrValidationFailed)
}

func operateFinds(t *testing.T, h Harness) {
	task, handler := job("scenario.find", nil, succeed)
	s := newScene(t, h, handler)
	runs, ctx := s.rt.Runs(), t.Context()
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{SingletonKey: "one", IdempotencyKey: "once"})
	active, err := runs.FindActive(ctx, "scenario.find", "one")
	s.must(err)
	current, err := runs.FindCurrent(ctx, "scenario.find", "once")
	s.must(err)
	if active.ID != run.ID || current.ID != run.ID {
		t.Fatalf("found %s and %s, want %s", active.ID, current.ID, run.ID)
	}
	s.execute(run)
	if _, err := runs.FindActive(ctx, "scenario.find", "one"); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Fatalf("the run has ended, and looking for its singleton key says %v", err)
	}
	if current, err := runs.FindCurrent(ctx, "scenario.find", "once"); err != nil ||
		current.Status != runlane.StatusSucceeded {
		t.Fatalf("the key is retained, and looking for it says %v, %v", current, err)
	}
	if _, err := runs.FindCurrent(ctx, "scenario.elsewhere", "once"); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Fatalf("another task's key: %v", err)
	}
}

func operateResets(t *testing.T, h Harness) {
	task, handler := job("scenario.reset", nil, succeed)
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{IdempotencyKey: "once"}
	keys, ctx := s.rt.IdempotencyKeys(), t.Context()
	s.wantCode(keys.Reset(ctx, "scenario.reset", "once"), runlane.ErrRunNotFound)
	run := s.trigger(task.With(jobPayload{}), options)
	err := keys.Reset(ctx, "scenario.reset", "once")
	if e := s.wantCode(
		err,
		runlane.ErrStorageConflict,
	); e.Conflict != runlane.ConflictIdempotencyKey || e.RunID != run.ID {
		t.Fatalf("an active owner: %v of %q", e, e.RunID)
	}
	s.execute(run)
	s.must(keys.Reset(ctx, "scenario.reset", "once"))
	if next := s.trigger(task.With(jobPayload{}), options); next.ID == run.ID {
		t.Fatal("the key was not freed")
	}
}

func operateAttempts(t *testing.T, h Harness) {
	task, handler := job("scenario.attempts", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 3}},
		func(_ context.Context, a *runlane.Attempt) error {
			switch a.Number {
			case 1:
				return runlane.Release(time.Minute, "not yet")
			case 2:
				return errors.New("once")
			default:
				return nil
			}
		})
	s := newScene(t, h, handler)
	wants := func(id runlane.RunID, want ...runlane.AttemptStatus) []core.AttemptSummary {
		t.Helper()
		attempts, err := s.rt.Runs().Attempts(t.Context(), id)
		s.must(err)
		var got []runlane.AttemptStatus
		for i, a := range attempts {
			got = append(got, a.Status)
			if a.Number != i+1 || a.WorkerID == "" || a.StartedAt.IsZero() ||
				a.FinishedAt.IsZero() != (a.Status == runlane.AttemptRunning) {
				t.Errorf("attempt is %+v", a)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("attempts are %q, want %q", got, want)
		}
		return attempts
	}
	run := s.trigger(task.With(jobPayload{}), nil)
	wants(run.ID)
	for range 2 {
		s.execute(run)
		s.clock.Advance(time.Hour)
	}
	s.die(run.ID)
	wants(run.ID, runlane.AttemptReleased, runlane.AttemptRetrying, runlane.AttemptRunning)
	s.clock.Advance(time.Minute) // the lease is over, and no tick or worker has found it
	wants(run.ID, runlane.AttemptReleased, runlane.AttemptRetrying, runlane.AttemptAbandoned)
	s.execute(run)
	attempts := wants(
		run.ID,
		runlane.AttemptReleased,
		runlane.AttemptRetrying,
		runlane.AttemptAbandoned,
		runlane.AttemptSucceeded,
	)
	if attempts[1].Failure.Code != runlane.ErrTaskFailed || attempts[2].WorkerID != "dead" ||
		attempts[3].WorkerID == "dead" {
		t.Fatalf("attempts are %+v", attempts)
	}
	stopped := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.Runs().Cancel(t.Context(), stopped.ID, nil)
	s.must(err)
	wants(stopped.ID) // it never started
	stopped = s.trigger(task.With(jobPayload{}), nil)
	s.die(stopped.ID)
	s.change(stopped.ID, &runlane.RunCancellationRequested{}, &runlane.RunCancelled{})
	wants(stopped.ID, runlane.AttemptCancelled)
	_, err = s.rt.Runs().Attempts(t.Context(), "run_absent")
	s.wantCode(err, runlane.ErrRunNotFound)
}
