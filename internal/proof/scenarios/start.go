package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func startScenarios() []scenario {
	return []scenario{
		{"a batch makes every run and publishes the wakeups together", nil, batchMakesAll, false},
		{"a bad item of a batch is its own error and no other's", nil, batchBadItem, false},
		{"duplicates within a batch are one run", needsIdempotency, batchDuplicates, false},
		{"a batch stops when the storage cannot be reached and says what was done", nil, batchOutage, true},
		{"a batch on a bounded queue reserves what there is room for", needsSlots, batchBounded, false},
		{"run now creates, claims and starts in one commit and sends no wakeup", nil, nowOneCommit, false},
		{"run now returns after its one attempt, whatever became of it", nil, nowFailing, false},
		{"run now whose answer was lost is told of a cancellation", nil, nowUnheardCancelled, false},
		{"run now on a duplicate key executes nothing", needsIdempotency, nowDuplicate, false},
		{"run now on a full queue is a conflict and writes nothing", needsSlots, nowFull, false},
		{"run now refuses what puts a run off, and tasks without a handler", nil, nowRefusals, false},
		{"a run whose inline attempt died is recovered by the tick", nil, nowDies, false},
	}
}

// batch triggers calls and returns the results, which must have come without an error of the batch.
func (s *scene) batch(items ...core.BatchItem) []core.BatchResult {
	s.Helper()
	results, err := s.rt.TriggerBatch(s.Context(), items)
	s.must(err)
	if len(results) != len(items) {
		s.Fatalf("%d results for %d items", len(results), len(items))
	}
	return results
}

func batchMakesAll(t *testing.T, h Harness) {
	task, handler := job("scenario.batch", nil, succeed)
	s := newScene(t, h, handler)
	var items []core.BatchItem
	for n := range 25 {
		items = append(items, core.BatchItem{Call: task.With(jobPayload{N: n})})
	}
	items[24].Options = &runlane.TriggerOptions{Delay: time.Hour}
	var calls []int
	s.transport.OnPublish(func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
		calls = append(calls, len(c.Attempts))
		outcomes := make([]lane.PublishOutcome, len(c.Attempts))
		for i := range outcomes {
			outcomes[i].Type = lane.Published
		}
		return outcomes, nil
	})
	var runs []*runlane.Run
	for n, result := range s.batch(items...) {
		s.must(result.Err)
		if want := fmt.Sprintf(`{"n":%d}`, n); string(result.Result.Run.Payload) != want {
			t.Fatalf("result %d is for %s, want %s", n, result.Result.Run.Payload, want)
		}
		runs = append(runs, result.Result.Run)
	}
	if !slices.Equal(calls, []int{24}) {
		t.Errorf("published %v together, want all 24", calls)
	}
	s.wantSent("the batch", runs[:24]...)
	for _, run := range runs[:24] {
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
}

func batchBadItem(t *testing.T, h Harness) {
	task, handler := job("scenario.batch-bad", nil, succeed)
	s := newScene(t, h, handler)
	results := s.batch(
		core.BatchItem{Call: task.With(jobPayload{N: 1})},
		core.BatchItem{Call: task.With(jobPayload{N: 2}), Options: &runlane.TriggerOptions{Delay: -1}},
		core.BatchItem{},
		core.BatchItem{Call: task.With(jobPayload{N: 4})},
	)
	s.must(errors.Join(results[0].Err, results[3].Err))
	s.wantCode(results[1].Err, runlane.ErrValidationFailed)
	if results[2].Err == nil || results[1].Result != nil || results[2].Result != nil {
		t.Fatalf("results are %+v", results)
	}
	s.wantSent("the good ones", results[0].Result.Run, results[3].Result.Run)
}

func batchDuplicates(t *testing.T, h Harness) {
	task, handler := job("scenario.batch-twice", nil, succeed)
	s := newScene(t, h, handler)
	item := core.BatchItem{Call: task.With(jobPayload{}), Options: &runlane.TriggerOptions{IdempotencyKey: "k"}}
	results := s.batch(item, item, item)
	created := 0
	for _, result := range results {
		s.must(result.Err)
		if result.Result.Run.ID != results[0].Result.Run.ID {
			t.Errorf("%s and %s have one key", result.Result.Run.ID, results[0].Result.Run.ID)
		}
		if result.Result.Outcome == runlane.TriggerCreated {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d were created", created)
	}
	s.wantSent("one run", results[0].Result.Run)
}

func batchOutage(t *testing.T, h Harness) {
	task, handler := job("scenario.batch-outage", nil, succeed)
	s := newScene(t, h, handler)
	down := &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "scripted",
		Retryable: true,
		Cause:     errScripted,
	}
	const outage, parallel, all = 20, 8, 300
	failed := make(chan struct{})
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			created, ok := c.Events[0].Body.(*runlane.RunCreated)
			var payload jobPayload
			if !ok || json.Unmarshal(created.Payload, &payload) != nil || payload.N < outage {
				return next()
			}
			if payload.N == outage {
				close(failed)
				return nil, down
			}
			<-failed // those at work beside it are through after it
			if payload.N > outage+parallel {
				<-time.After(time.Second) // virtual: the batch has heard of the outage
			}
			return next()
		}
	})
	var items []core.BatchItem
	for n := range all {
		items = append(items, core.BatchItem{Call: task.With(jobPayload{N: n})})
	}
	results, err := s.rt.TriggerBatch(s.Context(), items)
	s.wantCode(err, runlane.ErrStorageUnavailable)
	var done []*runlane.Run
	for n, result := range results {
		switch {
		case result.Err == nil:
			done = append(done, s.get(result.Result.Run.ID))
		case n == outage || errors.Is(result.Err, down):
		default:
			t.Errorf("item %d: %v", n, result.Err)
		}
	}
	if results[outage].Err == nil || len(done) <= outage-parallel || len(done) == all-1 {
		t.Errorf("%d of %d runs were made, item %d: %v", len(done), all, outage, results[outage].Err)
	}
	s.wantSent("what was done", done...)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err = s.rt.TriggerBatch(ctx, items[:1])
	s.wantCode(err, runlane.ErrOperationCancelled)
	s.wantCode(results[0].Err, runlane.ErrOperationCancelled)
}

func batchBounded(t *testing.T, h Harness) {
	task, handler := limited(2, nil, succeed)
	s := newScene(t, h, handler)
	item := core.BatchItem{Call: task.With(jobPayload{})}
	var reserved []*runlane.Run
	for _, result := range s.batch(item, item, item, item, item) {
		s.must(result.Err)
		if run := s.get(result.Result.Run.ID); !run.DispatchExpiresAt.IsZero() {
			reserved = append(reserved, run)
		}
	}
	if len(reserved) != 2 {
		t.Fatalf("%d reservations of 2 slots", len(reserved))
	}
	s.wantSent("for two slots", reserved...)
}

func nowOneCommit(t *testing.T, h Harness) {
	var seen runlane.Run
	task, handler := job("scenario.now", nil, func(_ context.Context, a *runlane.Attempt) error {
		seen = a.Run
		return a.SetOutput(map[string]int{"n": a.Number})
	})
	s := newScene(t, h, handler)
	result, err := s.rt.RunNow(t.Context(), task.With(jobPayload{N: 7}), &runlane.TriggerOptions{
		Meta: map[string]string{"a": "b"},
	})
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusSucceeded)
	s.sameAsStored(result.Run)
	if result.Outcome != runlane.TriggerCreated || string(result.Run.Output) != `{"n":1}` ||
		string(seen.Payload) != `{"n":7}` {
		t.Fatalf("result is %+v, the attempt saw %s", result, seen.Payload)
	}
	s.wantHistory(result.Run.ID, "created lease_claimed started succeeded")
	if appended := s.storage.appended(); len(appended) != 2 || len(appended[0].Events) != 3 {
		t.Fatalf("%d commits", len(appended))
	}
	s.wantSent("nothing")
}

func nowUnheardCancelled(t *testing.T, h Harness) {
	task, handler := job("scenario.now-unheard", nil, told)
	s := newScene(t, h, handler)
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			commit, err := next()
			if err != nil || !c.Creates() {
				return commit, err
			}
			s.change(c.Projected.ID, &runlane.RunCancellationRequested{})
			return nil, unavailableStorage("unknown")
		}
	})
	result, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), nil)
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusCancelled)
	s.wantHistory(result.Run.ID, "created lease_claimed started cancellation_requested cancelled")
}

func nowFailing(t *testing.T, h Harness) {
	options := &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}}
	task, handler := job("scenario.now-failing", options, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			return errors.New("no")
		}
		return nil
	})
	s := newScene(t, h, handler)
	result, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), nil)
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusRetrying)
	s.clock.Advance(time.Minute)
	s.tick()
	s.wantSent("its retry", result.Run)
	s.wantStatus(s.execute(result.Run), runlane.StatusSucceeded)
}

func nowDuplicate(t *testing.T, h Harness) {
	executed := 0
	task, handler := job("scenario.now-twice", nil, func(context.Context, *runlane.Attempt) error {
		executed++
		return nil
	})
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{IdempotencyKey: "k"}
	first, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), options)
	s.must(err)
	second, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), options)
	s.must(err)
	if second.Outcome != runlane.TriggerReturnedExisting || second.Run.ID != first.Run.ID || executed != 1 {
		t.Fatalf("second is %+v after %d executions", second, executed)
	}
}

func nowFull(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	holder := s.trigger(task.With(jobPayload{}), nil)
	options := &runlane.TriggerOptions{RunID: runlane.RunID("run_full" + string(s.rt.Environment()))}
	_, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), options)
	if e := s.wantCode(err, runlane.ErrStorageConflict); e.Conflict != runlane.ConflictQueueCapacity || !e.Retryable {
		t.Fatalf("error is %+v", e)
	}
	_, err = s.rt.Runs().Get(t.Context(), options.RunID)
	s.wantCode(err, runlane.ErrRunNotFound)
	s.execute(holder)
	result, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), options)
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusSucceeded)
}

func nowRefusals(t *testing.T, h Harness) {
	task, handler := job("scenario.now-refusals", nil, succeed)
	s := newScene(t, h, handler)
	for _, options := range []runlane.TriggerOptions{{Delay: time.Second}, {RunAt: s.clock.Now()}, {Deferred: true}} {
		_, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), &options)
		s.wantCode(err, runlane.ErrValidationFailed)
	}
	unknown := runlane.NewTask[jobPayload]("scenario.now-unknown", nil)
	_, err := s.rt.RunNow(t.Context(), unknown.With(jobPayload{}), nil)
	s.wantCode(err, runlane.ErrTaskNotFound)
	if appended := s.storage.appended(); len(appended) != 0 {
		t.Fatalf("%d commits", len(appended))
	}
}

func nowDies(t *testing.T, h Harness) {
	task, handler := job("scenario.now-dies", nil, succeed)
	s := newScene(t, h, handler)
	s.storage.script(func() { // the process ends with the first commit that follows the creation
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if c.Creates() {
				return next()
			}
			return nil, &runlane.Error{Code: runlane.ErrValidationFailed, Message: "dead"}
		}
	})
	if _, err := s.rt.RunNow(t.Context(), task.With(jobPayload{}), nil); err == nil {
		t.Fatal("the outcome was written")
	}
	s.storage.script(func() { s.storage.onAppend = nil })
	created := s.storage.appended()
	id := created[slices.IndexFunc(created, func(c *lane.AppendCommand) bool { return c.Creates() })].Projected.ID
	s.clock.Advance(3 * time.Minute)
	s.tick()
	run := s.get(id)
	s.wantSent("recovered", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}
