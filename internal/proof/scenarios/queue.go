package scenarios

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func queueScenarios() []scenario {
	return []scenario{
		{"a run that gets a slot is delivered with it", needsSlots, queueReserves, false},
		{"a run without a slot waits, and gets the next one that is freed at once", needsSlots, queueHandsOver, false},
		{"every outcome frees the slot: a retry and a release too", needsSlots, queueFreesAlways, false},
		{"a freed slot goes to the run that has waited longest", needsSlots, queueOldestFirst, false},
		{"a freed slot goes to the run with the highest priority", needsSlots, queueHighestFirst, false},
		{"a key with many waiting runs does not delay another key's first", needsSlots, queueFairKeys, false},
		{"no more runs than the limit execute at once", needsSlots, queueHoldsLimit, false},
		{"a run whose worker died is recovered with its own slot within one tick", needsSlots, queueRecovers, false},
		{"a run abandoned too often fails and frees its slot", needsSlots, queueAbandoned, false},
		{"a due run of a bounded queue is dispatched within one tick", needsSlots, queueDelayed, false},
		{"a wakeup later than its reservation takes a slot itself", needsSlots, queueLateWakeup, false},
		{"reservations without a claim double up to an hour", needsSlots, queueDoubles, false},
		{
			"a run that no one executes gives its slot back once it has had its time",
			needsSlots,
			queueGivesBack,
			false,
		},
		{"a wakeup that finds no slot leaves the run waiting for one", needsSlots, queueFull, false},
		{
			"a limit that is raised, lowered or removed holds from the next deployment on",
			needsSlots,
			queueChanges,
			false,
		},
		{
			"a due retry that waits for a slot is delivered when its queue loses the limit",
			needsSlots,
			queueRetryUnbounded,
			false,
		},
		{"a deferred trigger reserves its slot and leaves the wakeup to the relay", needsSlots, queueDeferred, false},
		{"drain executes what waits for slots", needsSlots, queueDrains, false},
	}
}

func needsSlots(c lane.StorageCapabilities) bool { return c.EnforcesQueueConcurrency }

// limited is a task on a separate bounded queue.
func limited(
	limit int, o *runlane.TaskOptions[jobPayload], f func(context.Context, *runlane.Attempt) error,
) (*runlane.Task[jobPayload], runlane.Handler) {
	if o == nil {
		o = &runlane.TaskOptions[jobPayload]{}
	}
	o.Queue = runlane.Queue{Name: "limited", Concurrency: limit}
	return job("scenario.limited", o, f)
}

func queueReserves(t *testing.T, h Harness) {
	task, handler := limited(2, nil, succeed)
	s := newScene(t, h, handler)
	run := s.reserved(s.trigger(task.With(jobPayload{}), nil))
	s.wantSent("with a free slot", run)
	s.wantHistory(run.ID, "created delivery_requested")
	if want := run.UpdatedAt.Add(runlane.DefaultDispatchTimeout); !run.DispatchExpiresAt.Equal(want) {
		t.Fatalf("reserved until %v, want %v", run.DispatchExpiresAt, want)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

// reserved is the run with the slot that it got with its creation. Where that met a conflict over the slot, the run was
// made without one, and a tick reserves it.
func (s *scene) reserved(run *runlane.Run) *runlane.Run {
	s.Helper()
	for range 20 {
		if !run.DispatchExpiresAt.IsZero() || !s.faults.happened() {
			break
		}
		s.tick()
		run = s.get(run.ID)
	}
	return run
}

func queueHandsOver(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	first := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(time.Millisecond)
	second := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(time.Millisecond)
	third := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("one slot", first)
	s.wantHistory(second.ID, "created")
	s.settle()
	s.execute(first)
	s.wantSent("first has ended", second)
	s.wantHistory(second.ID, "created delivery_requested")
	s.execute(second)
	s.wantSent("second has ended", third)
	s.wantStatus(s.execute(third), runlane.StatusSucceeded)
	s.wantSent("no run waits")
}

func queueFreesAlways(t *testing.T, h Harness) {
	for name, end := range map[string]error{
		"failure": runlane.Permanent(fmt.Errorf("no")),
		"retry":   fmt.Errorf("no"),
		"release": runlane.Release(time.Minute, "later"),
	} {
		options := &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}}
		task, handler := limited(1, options, func(context.Context, *runlane.Attempt) error { return end })
		s := newScene(t, h, handler)
		first, second := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
		s.wantSent("one slot", first)
		s.settle()
		s.execute(first)
		s.wantSent("after a "+name, second)
	}
}

func queueOldestFirst(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	var runs []*runlane.Run
	for range 4 {
		runs = append(runs, s.trigger(task.With(jobPayload{}), nil))
		s.clock.Advance(time.Second)
	}
	s.settle()
	for i, run := range runs {
		s.wantSent(fmt.Sprint("slot ", i), run)
		s.execute(run)
	}
}

func queueHighestFirst(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	order := []*runlane.Run{s.trigger(task.With(jobPayload{}), nil), nil, nil, nil}
	for i, priority := range map[int]int{1: 8, 2: 0, 3: -8} {
		order[i] = s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Priority: priority})
	}
	next := s.explains("the last", s.rt, order[3].ID, core.WaitSlot).Next
	if !strings.Contains(next, "Its priority of -8 takes off 1h20m of its waiting.") {
		t.Error(next)
	}
	s.settle()
	for i, run := range order {
		s.wantSent(fmt.Sprint("slot ", i), run)
		s.execute(run)
	}
}

func queueFairKeys(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	crowd := &runlane.TriggerOptions{ConcurrencyKey: "crowd"}
	var first *runlane.Run
	for i := range 20 {
		run := s.trigger(task.With(jobPayload{N: i}), crowd)
		if i == 0 {
			first = run
		}
	}
	s.wantSent("crowd", first)
	single := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{ConcurrencyKey: "single"})
	s.wantSent("its key has a separate slot", single)

	// Those that came due while everything stood still are served by the tick, a slot for each key.
	other := &runlane.TriggerOptions{ConcurrencyKey: "other", Delay: time.Second}
	late := s.trigger(task.With(jobPayload{}), other)
	s.clock.Advance(time.Minute)
	if result := s.tick(); result.Dispatched.Done != 1 {
		t.Fatalf("tick is %+v", result)
	}
	s.wantSent("the other key's first", late)
}

func queueHoldsLimit(t *testing.T, h Harness) {
	const limit, runs = 3, 12
	var mu sync.Mutex
	executing, most := 0, 0
	begun, done := make(chan struct{}, runs), make(chan struct{})
	task, handler := limited(limit, nil, func(ctx context.Context, _ *runlane.Attempt) error {
		mu.Lock()
		executing++
		most = max(most, executing)
		mu.Unlock()
		begun <- struct{}{}
		select {
		case <-done:
		case <-ctx.Done():
		}
		mu.Lock()
		executing--
		mu.Unlock()
		return nil
	})
	s := newScene(t, h, handler)
	for i := range runs {
		s.trigger(task.With(jobPayload{N: i}), nil)
	}
	var group sync.WaitGroup
	sent := map[runlane.RunID]bool{}
	deliver := func() {
		for _, w := range s.transport.TakePublished() {
			sent[w.RunID] = true
			group.Go(func() {
				if _, err := s.rt.ExecuteDelivery(
					s.Context(),
					lane.Wakeup{RunKey: s.key(w.RunID), Queue: w.Queue},
					nil,
				); err != nil {
					t.Error(err)
				}
			})
		}
	}
	s.until("as many wakeups as slots", func() bool {
		if s.faults.happened() {
			s.tick()
		}
		deliver()
		return len(sent) >= limit
	})
	for range limit {
		<-begun
	}
	if len(sent) != limit {
		t.Errorf("wakeups of %d runs were sent for %d slots", len(sent), limit)
	}
	close(done)
	s.until("all runs have had their wakeup", func() bool {
		if s.faults.happened() {
			s.tick()
		}
		deliver()
		return len(sent) == runs
	})
	group.Wait()
	if most != limit {
		t.Errorf("%d executed at once, the limit is %d", most, limit)
	}
}

func queueRecovers(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run, waiting := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("one slot", run)
	s.die(run.ID)
	s.clock.Advance(2*time.Minute + time.Second)
	if result := s.tick(); result.Dispatched.Done != 1 {
		t.Fatalf("tick is %+v", result)
	}
	s.wantSent("recovered", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantSent("handed over", waiting)
}

func queueAbandoned(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run, waiting := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	for n := range runlane.DefaultMaxAbandoned {
		s.wantSent(fmt.Sprint("attempt ", n+1), run)
		s.die(run.ID)
		s.clock.Advance(3 * time.Minute)
		s.tick()
	}
	s.wantStatus(s.get(run.ID), runlane.StatusFailed)
	s.wantSent("its slot went to the next", waiting)
}

func queueDelayed(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.wantHistory(run.ID, "created")
	s.clock.Advance(time.Hour + time.Minute)
	if result := s.tick(); result.Dispatched.Done != 1 {
		t.Fatalf("tick is %+v", result)
	}
	s.wantSent("due", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func queueLateWakeup(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(runlane.DefaultDispatchTimeout + 5*time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func queueDoubles(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	for _, minutes := range []int{4, 8, 16, 32, 60, 60} {
		s.clock.Advance(s.get(run.ID).DispatchExpiresAt.Sub(s.clock.Now()) + 2*time.Minute)
		s.tick()
		now := s.get(run.ID)
		if got, want := now.DispatchExpiresAt.Sub(now.DispatchedAt), time.Duration(minutes)*time.Minute; got != want {
			t.Fatalf("reserved for %s, want %s", got, want)
		}
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func queueGivesBack(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	unknown, executes := job("scenario.unknown", &runlane.TaskOptions[jobPayload]{Queue: handler.Task.Queue}, succeed)
	s := newScene(t, h, handler)
	handBack := func(run *runlane.Run) {
		t.Helper()
		_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
		s.wantCode(err, runlane.ErrTaskNotFound)
	}
	stuck := s.trigger(unknown.With(jobPayload{}), nil)
	handBack(stuck)
	waiting := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("the reservation keeps its slot", stuck)
	s.settle()
	s.clock.Advance(runlane.DefaultDispatchTimeout / 4)
	handBack(stuck)
	s.wantSent("for a quarter of its time", waiting)
	s.execute(waiting)
	s.clock.Advance(runlane.DefaultDispatchTimeout + time.Minute)
	s.tick()
	s.wantSent("reserved again", stuck)

	reserved := s.get(stuck.ID)
	waiting = s.trigger(task.With(jobPayload{}), nil)
	handBack(stuck)
	s.wantSent("nothing: this one keeps its slot as long")
	s.clock.Advance(runlane.DefaultDispatchTimeout / 4)
	s.settle() // the hand-over reads an index
	handBack(stuck)
	s.wantSent("the slot that was given back", waiting)
	e, err := s.rt.Runs().Explain(s.Context(), stuck.ID)
	s.must(err)
	if !strings.Contains(e.Next, "gave its slot to the next run") {
		t.Errorf("explained as %s", e.Next)
	}
	handBack(stuck)
	s.execute(waiting)
	s.tick()
	s.wantSent("nothing: it had its turn")
	s.sameAsStored(reserved)

	// A process that can execute it asks for the next slot.
	waiting = s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("the free slot", waiting)
	s.options.Handlers = append(s.options.Handlers, executes)
	able, _ := s.second()
	result, err := able.ExecuteDelivery(s.Context(), s.wakeup(stuck), nil)
	s.must(err)
	if result.Ignored != core.IgnoredNoCapacity {
		t.Errorf("ignored as %q", result.Ignored)
	}
	s.settle()
	s.execute(waiting)
	s.wantSent("the next slot", stuck)
	result, err = able.ExecuteDelivery(s.Context(), s.wakeup(stuck), nil)
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusSucceeded)
}

func queueFull(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	holder, waiting := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	s.ignored(waiting, core.IgnoredNoCapacity)
	s.wantHistory(waiting.ID, "created")
	s.wantSent("one slot", holder)
	s.settle()
	s.execute(holder)
	s.wantSent("and the next", waiting)
}
