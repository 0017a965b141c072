package scenarios

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func debounceScenarios() []scenario {
	return []scenario{
		{"the last of several triggers makes the run, once its window is quiet", needsIdempotency, debounceLast, false},
		{"no trigger delays a debounced run beyond its latest time", needsIdempotency, debounceMax, false},
		{"of triggers at one time the last one answered makes the run", needsIdempotency, debounceTogether, false},
		{"a trigger that loses against the claim makes a run of its own", needsIdempotency, debounceClaimed, false},
		{"after a cancelled debounced run the next trigger makes a run", needsIdempotency, debounceCancelled, false},
		{"a debounced run of a bounded queue waits for its time and then for a slot",
			needsBoth(needsIdempotency, needsSlots), debounceBounded, false},
		{"a batch is debounced in the order of its items", needsIdempotency, debounceBatch, false},
		{"of a throttled key the first trigger of a window makes the run", needsIdempotency, throttleFirst, false},
	}
}

// numbers is a task whose handler notes the numbers that it executes.
func numbers(name string, o *runlane.TaskOptions[jobPayload]) (*runlane.Task[jobPayload], runlane.Handler, func() []int) {
	var mu sync.Mutex
	var seen []int
	if o == nil {
		o = &runlane.TaskOptions[jobPayload]{}
	}
	task := runlane.NewTask(runlane.TaskID(name), o)
	handler := task.Handle(func(_ context.Context, _ *runlane.Attempt, p jobPayload) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p.N)
		return nil
	})
	return task, handler, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// again triggers what a waiting run answers.
func (s *scene) again(call runlane.Call, o *runlane.TriggerOptions, run *runlane.Run) *runlane.Run {
	s.Helper()
	result, err := s.rt.Trigger(s.Context(), call, o)
	s.must(err)
	if result.Outcome != runlane.TriggerDebounced || result.Run.ID != run.ID || !result.PayloadDiffers {
		s.Fatalf("the trigger was answered with %+v, want the waiting run %s", result, run.ID)
	}
	s.sameAsStored(result.Run)
	return result.Run
}

func (s *scene) wantExecuted(got []int, want ...int) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Fatalf("executed %v, want %v", got, want)
	}
}

func debounceLast(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.debounced", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Minute}}
	run := s.trigger(task.With(jobPayload{N: 1}), o)
	s.wantStatus(run, runlane.StatusScheduled)
	s.transport.TakeDelayed()
	for n := 2; n <= 3; n++ {
		s.clock.Advance(40 * time.Second)
		run = s.again(task.With(jobPayload{N: n}), o, run)
		if want := s.clock.Now().Add(time.Minute); run.RunAt.Before(runlane.UTCMillis(want)) || run.Debounced.Triggers != n {
			t.Fatalf("it is due at %v after %d triggers, want %v", run.RunAt, run.Debounced.Triggers, want)
		}
		if n := len(s.transport.TakeDelayed()) + len(s.transport.TakePublished()); n != 0 {
			t.Fatalf("a later trigger sent %d wakeups", n)
		}
	}
	s.explains("before its time", s.rt, run.ID, core.WaitTime)
	s.ignored(run, core.IgnoredNotDue) // the wakeup for the first time
	if sent := s.transport.TakeDelayed(); len(sent) == 0 || sent[0].Delay < 59*time.Second {
		t.Fatalf("an early wakeup was sent again as %+v", sent)
	}
	other := s.trigger(task.With(jobPayload{N: 9}), &runlane.TriggerOptions{
		Debounce: runlane.Debounce{Key: "other", Window: time.Minute},
	})
	s.clock.Advance(61 * time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantExecuted(executed(), 3)
	s.wantHistory(run.ID, "created delivery_requested debounced debounced lease_claimed started succeeded")
	s.execute(other)
	s.trigger(task.With(jobPayload{N: 4}), o) // makes a run
}

func debounceMax(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.latest", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Window: time.Minute, Max: 90 * time.Second}}
	run := s.trigger(task.With(jobPayload{N: 1}), o)
	latest := run.CreatedAt.Add(90 * time.Second)
	s.clock.Advance(50 * time.Second)
	if run = s.again(task.With(jobPayload{N: 2}), o, run); !run.RunAt.Equal(latest) {
		t.Fatalf("it is due at %v, want the latest time %v", run.RunAt, latest)
	}
	s.clock.Advance(30 * time.Second)
	if run = s.again(task.With(jobPayload{N: 3}), o, run); !run.RunAt.Equal(latest) {
		t.Fatalf("it is due at %v, want the latest time %v", run.RunAt, latest)
	}
	s.clock.Advance(11 * time.Second)
	s.execute(run)
	s.wantExecuted(executed(), 3)
}

func debounceTogether(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.together", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Hour}}
	const callers = 6
	runs := make([]*runlane.Run, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			result, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: n}), o)
			for errors.Is(err, runlane.ErrStorageUnavailable) {
				result, err = s.rt.Trigger(s.Context(), task.With(jobPayload{N: n}), o)
			}
			if err != nil {
				t.Errorf("caller %d: %v", n, err)
				return
			}
			runs[n] = result.Run
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	last := 0
	for n, run := range runs {
		if run.ID != runs[0].ID {
			t.Fatalf("two runs: %s and %s", run.ID, runs[0].ID)
		}
		if run.EventSequence > runs[last].EventSequence {
			last = n
		}
	}
	s.clock.Advance(time.Hour + time.Second)
	s.execute(runs[0])
	s.wantExecuted(executed(), last)
}

func debounceClaimed(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.overtaken", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Minute}}
	run := s.trigger(task.With(jobPayload{N: 1}), o)
	s.clock.Advance(59 * time.Second)
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			s.storage.script(func() { s.storage.onAppend = nil })
			s.clock.Advance(2 * time.Second)
			s.execute(run)
			return next()
		}
	})
	second := s.trigger(task.With(jobPayload{N: 2}), o)
	s.wantExecuted(executed(), 1)
	s.clock.Advance(61 * time.Second)
	s.execute(second)
	s.wantExecuted(executed(), 1, 2)
}

func debounceCancelled(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.dropped", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Minute}}
	run := s.trigger(task.With(jobPayload{N: 1}), o)
	_, err := s.rt.Runs().Cancel(s.Context(), run.ID, nil)
	s.must(err)
	second := s.trigger(task.With(jobPayload{N: 2}), o)
	s.clock.Advance(61 * time.Second)
	s.ignored(run, core.IgnoredTerminal)
	s.execute(second)
	s.wantExecuted(executed(), 2)
}

func debounceBounded(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.narrow", &runlane.TaskOptions[jobPayload]{
		Queue: runlane.Queue{Name: "limited", Concurrency: 1},
	})
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Hour}}
	run := s.trigger(task.With(jobPayload{N: 1}), o)
	run = s.again(task.With(jobPayload{N: 2}), o, run)
	s.ignored(run, core.IgnoredNotDue)
	s.clock.Advance(time.Hour + time.Minute)
	if result := s.tick(); result.Dispatched.Done != 1 {
		t.Fatalf("tick is %+v", result)
	}
	s.wantSent("due", run)
	s.execute(run)
	s.wantExecuted(executed(), 2)
}

func debounceBatch(t *testing.T, h Harness) {
	task, handler, executed := numbers("scenario.batched", nil)
	s := newScene(t, h, handler)
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Minute}}
	var items []core.BatchItem
	for n := range 12 {
		items = append(items, core.BatchItem{Call: task.With(jobPayload{N: n}), Options: o})
	}
	var run *runlane.Run
	for i, result := range s.batch(items...) {
		s.must(result.Err)
		if run != nil && result.Result.Run.ID != run.ID {
			t.Fatalf("item %d made another run", i)
		}
		run = result.Result.Run
	}
	s.clock.Advance(61 * time.Second)
	s.execute(run)
	s.wantExecuted(executed(), 11)
}

// The storage looks at its own clock: the first window is over by that.
func throttleFirst(t *testing.T, h Harness) {
	task := runlane.NewTask[jobPayload]("scenario.throttled", nil)
	s := newScene(t, h, task.Handle(func(context.Context, *runlane.Attempt, jobPayload) error {
		return runlane.Permanent(runlane.ErrTaskFailed)
	}))
	o := &runlane.TriggerOptions{Throttle: runlane.Throttle{Key: "k", Window: time.Hour}}
	s.clock.Advance(-2 * time.Hour)
	before := s.trigger(task.With(jobPayload{N: 0}), o)
	s.clock.Advance(2 * time.Hour)
	first := s.trigger(task.With(jobPayload{N: 1}), o) // though the one before is active
	if first.ID == before.ID {
		t.Fatal("a window did not end")
	}
	same := func(n int) {
		t.Helper()
		got, err := s.rt.Trigger(s.Context(), task.With(jobPayload{N: n}), o)
		s.must(err)
		if got.Outcome != runlane.TriggerReturnedExisting || got.Run.ID != first.ID {
			t.Fatalf("the trigger was answered with %+v, want the first run", got)
		}
	}
	same(2)
	s.wantStatus(s.execute(first), runlane.StatusFailed)
	same(3)
	retried, err := s.rt.Runs().Retry(s.Context(), first.ID, nil)
	s.must(err)
	if retried.IdempotencyKey != "" {
		t.Fatal("the retry of a throttled run has its key")
	}
}
