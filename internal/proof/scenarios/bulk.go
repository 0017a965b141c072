package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func operateBulkScenarios() []scenario {
	history := needsBoth(needsHistory, needsLeases)
	return []scenario{
		{"a bulk cancellation counts, caps and resumes", history, bulkCancels, false},
		{"a bulk cancellation skips what moved on and keeps what failed", history, bulkCounts, false},
		{"bulk reruns and retries make nothing twice", history, bulkRepeats, false},
		{"a bulk call that is stopped says where to resume", history, bulkStopped, false},
		{
			"pruning counts first, keeps what retains a key, and removes",
			needsBoth(needsPruning, needsBoth(needsHistory, needsIdempotency)),
			bulkPrunes,
			false,
		},
		{
			"pruning resumes with the cutoff it began with",
			needsBoth(needsPruning, needsHistory),
			bulkPruneResumes,
			false,
		},
		{"a given-up wakeup is listed and requeued by the operator", needsDeadLetters, bulkRequeues, false},
		{
			"a given-up wakeup of a bounded run goes back to waiting for a slot",
			needsBoth(needsDeadLetters, needsSlots),
			bulkRequeuesBounded,
			false,
		},
		{"given-up wakeups are requeued by filter", needsBoth(needsDeadLetters, needsHistory), bulkRequeuesAll, false},
	}
}

// pages calls until nothing is left, at most as often as there could be pages.
func (s *scene) pages(call func(runlane.Cursor) (*core.BulkResult, error)) []*core.BulkResult {
	s.Helper()
	var results []*core.BulkResult
	for at := runlane.Cursor(""); len(results) < 50; {
		result, err := call(at)
		s.must(err)
		results = append(results, result)
		if at = result.Next; at == "" {
			return results
		}
	}
	s.Fatal("there is always more")
	return nil
}

func sum(results []*core.BulkResult) (all core.BulkResult) {
	for _, r := range results {
		all.Matched += r.Matched
		all.Changed += r.Changed
		all.Skipped += r.Skipped
	}
	return all
}

func (s *scene) wantCounts(what string, results []*core.BulkResult, matched, changed, skipped int) {
	s.Helper()
	if all := sum(results); all.Matched != matched || all.Changed != changed || all.Skipped != skipped {
		s.Fatalf("%s: %+v, want %d matched, %d changed, %d skipped", what, all, matched, changed, skipped)
	}
}

func bulkCancels(t *testing.T, h Harness) {
	task, handler := job("scenario.bulk", nil, succeed)
	s := newScene(t, h, handler)
	var runs []*runlane.Run
	for range 5 {
		runs = append(runs, s.trigger(task.With(jobPayload{}), nil))
	}
	kept := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Queue: runlane.Queue{Name: "elsewhere"}})
	done := s.succeeded(task)
	options := core.BulkOptions{RunFilter: core.RunFilter{Queue: "default"}, Cap: 2, DryRun: true}
	cancelAll := func(at runlane.Cursor) (*core.BulkResult, error) {
		o := options
		o.After = at
		return s.rt.Runs().CancelAll(t.Context(), &o)
	}
	s.settle()
	results := s.pages(cancelAll)
	s.wantCounts("a dry run", results, 5, 0, 0)
	s.wantStatus(s.get(runs[0].ID), runlane.StatusQueued)

	options.DryRun = false
	result, err := cancelAll("")
	s.must(err)
	if result.Matched != 2 || result.Changed != 2 || result.Next == "" {
		t.Fatalf("the first two are %+v", result)
	}
	foreign := core.BulkOptions{AllRuns: true, After: result.Next}
	s.wantCode(errorOf(s.rt.Runs().CancelAll(t.Context(), &foreign)), runlane.ErrValidationFailed)
	options.After = result.Next
	s.wantCode(errorOf(s.rt.Runs().RerunAll(t.Context(), &options)), runlane.ErrValidationFailed)
	options.After = ""
	rest := s.pages(func(at runlane.Cursor) (*core.BulkResult, error) {
		if at == "" {
			at = result.Next
		}
		return cancelAll(at)
	})
	s.wantCounts("the rest", rest, 3, 3, 0)
	for _, run := range runs {
		s.wantStatus(s.get(run.ID), runlane.StatusCancelled)
	}
	s.wantStatus(s.get(kept.ID), runlane.StatusQueued)
	s.wantStatus(s.get(done.ID), runlane.StatusSucceeded)
}

func bulkCounts(t *testing.T, h Harness) {
	task, handler := job("scenario.bulk-counts", nil, succeed)
	s := newScene(t, h, handler)
	asked := s.trigger(task.With(jobPayload{}), nil)
	s.die(asked.ID)
	s.change(asked.ID, &runlane.RunCancellationRequested{})
	bad := s.trigger(task.With(jobPayload{}), nil)
	s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if c.Projected.ID == bad.ID {
				return nil, unavailableStorage("")
			}
			return next()
		}
	})
	s.settle()
	result, err := s.rt.Runs().CancelAll(t.Context(), &core.BulkOptions{
		RunFilter: core.RunFilter{Statuses: []runlane.Status{
			runlane.StatusQueued, runlane.StatusCancellationRequested,
		}},
	})
	s.must(err)
	if result.Matched != 3 || result.Changed != 1 || result.Skipped != 1 || len(result.Failed) != 1 ||
		runlane.CodeOf(result.Failed[bad.ID]) != runlane.ErrStorageUnavailable {
		t.Fatalf("result is %+v", result)
	}
}

func bulkRepeats(t *testing.T, h Harness) {
	task, handler := job("scenario.bulk-repeat", nil, func(_ context.Context, a *runlane.Attempt) error {
		if len(a.Run.Meta) > 0 {
			return errors.New("always")
		}
		return nil
	})
	s := newScene(t, h, handler)
	for i := range 4 {
		options := &runlane.TriggerOptions{}
		if i%2 == 0 {
			options.Meta = operateMeta()
		}
		s.execute(s.trigger(task.With(jobPayload{}), options))
	}
	all := core.BulkOptions{AllRuns: true}
	ctx := t.Context()
	s.settle()
	retried, err := s.rt.Runs().RetryAll(ctx, &all)
	s.must(err)
	s.wantCounts("the first retry", []*core.BulkResult{retried}, 2, 2, 0)
	retried, err = s.rt.Runs().RetryAll(ctx, &all)
	s.must(err)
	s.wantCounts("the second retry", []*core.BulkResult{retried}, 2, 0, 2)
	one := core.BulkOptions{
		RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusFailed}},
		Cap:       1,
		DryRun:    true,
	}
	dry, err := s.rt.Runs().RerunAll(ctx, &one)
	s.must(err)
	one.After = dry.Next
	s.must(errorOf(s.rt.Runs().RerunAll(ctx, &one)))
	s.wantCode(errorOf(s.rt.Runs().RetryAll(ctx, &one)), runlane.ErrValidationFailed) // the cursor is of the other call
	all.Cap = 3
	reruns := s.pages(func(at runlane.Cursor) (*core.BulkResult, error) {
		o := all
		o.After = at
		return s.rt.Runs().RerunAll(ctx, &o)
	})
	s.wantCounts("the rerun", reruns, 4, 4, 0)
	s.settle()
	active := 0
	for run, err := range s.rt.Runs().All(ctx, &core.ListOptions{
		RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusQueued}},
	}) {
		s.must(err)
		if active++; run.Source.RunID == "" {
			t.Errorf("%+v has no source", run)
		}
	}
	if active != 6 {
		t.Errorf("%d runs were made, want two retries and four reruns", active)
	}
}

func bulkStopped(t *testing.T, h Harness) {
	task, handler := job("scenario.bulk-stopped", nil, succeed)
	s := newScene(t, h, handler)
	runs := []*runlane.Run{s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)}
	ctx, stop := context.WithCancel(t.Context())
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			defer stop()
			return next()
		}
	})
	options := core.BulkOptions{AllRuns: true}
	s.settle()
	result, err := s.rt.Runs().CancelAll(ctx, &options)
	if runlane.CodeOf(err) != runlane.ErrOperationCancelled || result == nil || result.Next == "" ||
		len(result.Failed) > 0 {
		t.Fatalf("the caller stopped, and the call says %+v, %v", result, err)
	}
	s.storage.script(func() { s.storage.onAppend = nil })
	options.After = result.Next
	rest, err := s.rt.Runs().CancelAll(t.Context(), &options)
	s.must(err)
	if rest.Next != "" || len(rest.Failed) > 0 {
		t.Fatalf("%+v, and then %+v", result, rest)
	}
	for _, run := range runs {
		s.wantStatus(s.get(run.ID), runlane.StatusCancelled)
		s.wantHistory(run.ID, "created delivery_requested cancelled")
	}
}

func bulkPrunes(t *testing.T, h Harness) {
	task, handler := job("scenario.prune", nil, succeed)
	s := newScene(t, h, handler)
	active := s.trigger(task.With(jobPayload{}), nil)
	gone := s.succeeded(task)
	keeps := s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{IdempotencyKey: "kept"}))
	s.clock.Advance(time.Hour + time.Second)
	young := s.succeeded(task)
	options := core.PruneOptions{OlderThan: time.Hour, DryRun: true}
	prune := func(at runlane.Cursor) (*core.BulkResult, error) {
		o := options
		o.After = at
		return s.rt.Runs().Prune(t.Context(), &o)
	}
	s.settle()
	s.wantCounts("a dry run", s.pages(prune), 2, 0, 1)
	s.get(gone.ID)
	options.DryRun = false
	s.wantCounts("pruning", s.pages(prune), 2, 1, 1)
	s.wantCode(errorOf(s.rt.Runs().Get(t.Context(), gone.ID)), runlane.ErrRunNotFound)
	for _, id := range []runlane.RunID{active.ID, keeps.ID, young.ID} {
		s.get(id)
	}
	options.ReleaseOwners, options.DryRun = true, true
	s.settle()
	s.wantCounts("a dry run that releases owners", s.pages(prune), 1, 0, 0)
	options.DryRun = false
	s.wantCounts("pruning with owners", s.pages(prune), 1, 1, 0)
	s.wantCode(errorOf(s.rt.Runs().FindCurrent(t.Context(), "scenario.prune", "kept")), runlane.ErrRunNotFound)
}

func bulkPruneResumes(t *testing.T, h Harness) {
	task, handler := job("scenario.prune-again", nil, succeed)
	s := newScene(t, h, handler)
	for range 3 {
		s.succeeded(task)
		s.clock.Advance(time.Second)
	}
	s.clock.Advance(time.Hour)
	late := s.succeeded(task)
	options := core.PruneOptions{OlderThan: time.Hour, Limit: 1}
	s.settle()
	result, err := s.rt.Runs().Prune(t.Context(), &options)
	s.must(err)
	if result.Changed != 1 || result.Next == "" {
		t.Fatalf("the first is %+v", result)
	}
	s.clock.Advance(24 * time.Hour) // by now the young one is old, but not to this pruning
	changed := 1
	for options.After = result.Next; options.After != ""; options.After = result.Next {
		result, err = s.rt.Runs().Prune(t.Context(), &options)
		s.must(err)
		changed += result.Changed
	}
	if changed != 3 {
		t.Fatalf("%d runs were removed, want the three that were old at the beginning", changed)
	}
	s.get(late.ID)
	options.After, options.ReleaseOwners = runlane.Cursor("made up"), true
	s.wantCode(errorOf(s.rt.Runs().Prune(t.Context(), &options)), runlane.ErrValidationFailed)
}
