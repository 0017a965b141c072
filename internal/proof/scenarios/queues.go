package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// statsScenarios are the operator's view of queues.
func statsScenarios() []scenario {
	return []scenario{
		{name: "queues are listed with their limit, known or only bound", needs: needsSlots, prove: statsListed},
		{name: "a queue's runs are counted by what they wait for", needs: needsHistory, prove: statsCounted},
		{name: "finished runs and those of other queues are not counted", needs: needsHistory, prove: statsOthers},
		{
			name:  "a bounded queue counts what waits for a slot and what has one",
			needs: needsBoth(needsHistory, needsSlots),
			prove: statsBounded,
		},
		{name: "stats of a name that is none are refused", needs: needsHistory, prove: statsRefused},
		{
			name:  "a drain reports the next due time of bounded queues too",
			needs: needsBoth(needsHistory, needsSlots),
			prove: drainReportsNextDue,
		},
	}
}

func (s *scene) stats(name runlane.QueueName) *core.QueueStats {
	s.Helper()
	stats, err := again(s.rt, func() (*core.QueueStats, error) { return s.rt.Queues().Stats(s.Context(), name) })
	s.must(err)
	return stats
}

// wantStats compares all but the instant.
func (s *scene) wantStats(name runlane.QueueName, want core.QueueStats) {
	s.Helper()
	s.settle()
	got := *s.stats(name)
	if !got.At.Equal(runlane.UTCMillis(s.clock.Now())) {
		s.Fatalf("stats are of %s, it is %s", got.At, s.clock.Now())
	}
	want.At = got.At
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("stats of %q (-want +got):\n%s", name, diff)
	}
}

func statsListed(t *testing.T, h Harness) {
	_, bounded := limited(3, nil, succeed)
	_, plain := job("scenario.listed", nil, succeed)
	more := runlane.Queue{Name: "more", Concurrency: 7, DispatchTimeout: time.Minute}
	s := openScene(
		t,
		h,
		core.Options{Handlers: []runlane.Handler{plain, bounded}, Queues: []runlane.Queue{more}},
		func(s *scene) {
			s.transport.Bind("default", "foreign", "limited", "more")
		},
	)
	reads := s.storage.readCount()
	want := []core.QueueState{
		{Queue: runlane.DefaultQueue, Known: true, Bound: true}, {Queue: runlane.Queue{Name: "foreign"}, Bound: true},
		{Queue: bounded.Task.Queue, Known: true, Bound: true}, {Queue: more, Known: true, Bound: true},
	}
	if diff := cmp.Diff(want, s.rt.Queues().List()); diff != "" {
		t.Fatalf("queues (-want +got):\n%s", diff)
	}
	if s.storage.readCount() != reads {
		t.Fatal("listing queues read runs")
	}
}

func statsCounted(t *testing.T, h Harness) {
	queue := runlane.Queue{Name: "counted"}
	outcome := error(nil)
	task, handler := job("scenario.counted", &runlane.TaskOptions[jobPayload]{
		Queue: queue, Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(10 * time.Minute), NoJitter: true},
	}, func(context.Context, *runlane.Attempt) error { return outcome })
	s := newScene(t, h, handler)
	s.transport.SetDepth(17)
	state := core.QueueState{Queue: queue, Known: true, Bound: true}
	s.wantStats("counted", core.QueueStats{QueueState: state, Backlog: 17})

	outcome = errors.New("no")
	retrying := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(retrying, runlane.StatusRetrying)
	outcome = runlane.Release(time.Hour, "later")
	s.wantStatus(s.execute(s.trigger(task.With(jobPayload{}), nil)), runlane.StatusReleased)
	delayed := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: 5 * time.Minute})
	s.wantStats("counted", core.QueueStats{QueueState: state, Backlog: 17, Delayed: 3, NextDue: delayed.RunAt})

	oldest := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(2 * time.Second)
	running, stopping := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	s.die(running.ID)
	s.die(stopping.ID)
	s.change(stopping.ID, &runlane.RunCancellationRequested{})
	s.wantStats("counted", core.QueueStats{
		QueueState:    state,
		Backlog:       17,
		Waiting:       1,
		OldestWaiting: oldest.RunAt,
		Oldest:        oldest.ID,
		Running:       2,
		Delayed:       3,
		NextDue:       delayed.RunAt,
	})
	s.clock.Advance(7 * time.Minute) // the delayed one is due; no tick has found it
	s.wantStats("counted", core.QueueStats{
		QueueState:    state,
		Backlog:       17,
		Waiting:       2,
		OldestWaiting: oldest.RunAt,
		Oldest:        oldest.ID,
		Running:       2,
		Delayed:       2,
		NextDue:       retrying.RunAt,
	})
}

func statsOthers(t *testing.T, h Harness) {
	task, handler := job("scenario.ended", nil, succeed)
	s := newScene(t, h, handler)
	for range 3 {
		s.execute(s.trigger(task.With(jobPayload{}), nil))
	}
	cancelled := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.Runs().Cancel(t.Context(), cancelled.ID, nil)
	s.must(err)
	waiting := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Queue: runlane.Queue{Name: "elsewhere"}})
	s.wantStats("default", core.QueueStats{
		QueueState: core.QueueState{Queue: runlane.DefaultQueue, Known: true, Bound: true},
	})
	s.wantStats("elsewhere", core.QueueStats{ // this runtime does not know whether it has a limit
		QueueState:    core.QueueState{Queue: runlane.Queue{Name: "elsewhere"}, Bound: true},
		Waiting:       1,
		OldestWaiting: waiting.RunAt,
		Oldest:        waiting.ID,
	})
}

func statsBounded(t *testing.T, h Harness) {
	task, handler := limited(2, nil, succeed)
	s := newScene(t, h, handler)
	state := core.QueueState{Queue: handler.Task.Queue, Known: true, Bound: true}
	first := s.reserved(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Second)
	second := s.reserved(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Second)
	third := s.trigger(task.With(jobPayload{}), nil)
	if !third.RunAt.IsZero() {
		t.Fatalf("the third run of two slots is %+v", third)
	}
	s.wantStats("limited", core.QueueStats{
		QueueState:    state,
		Waiting:       3,
		Reserved:      2,
		OldestWaiting: first.RunAt,
		Oldest:        first.ID,
	})
	s.die(first.ID)
	s.wantStats("limited", core.QueueStats{
		QueueState:    state,
		Waiting:       2,
		Reserved:      1,
		OldestWaiting: second.RunAt,
		Oldest:        second.ID,
		Running:       1,
	})
	s.die(second.ID)
	s.wantStats("limited", core.QueueStats{
		QueueState:    state,
		Waiting:       1,
		OldestWaiting: third.CreatedAt,
		Oldest:        third.ID,
		Running:       2,
	})
	later := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.wantStats("limited", core.QueueStats{
		QueueState:    state,
		Waiting:       1,
		OldestWaiting: third.CreatedAt,
		Oldest:        third.ID,
		Running:       2,
		Delayed:       1,
		NextDue:       later.RunAt,
	})
}

func statsRefused(t *testing.T, h Harness) {
	s := newScene(t, h)
	for _, name := range []runlane.QueueName{"", "a:b"} {
		_, err := s.rt.Queues().Stats(t.Context(), name)
		if e := s.wantCode(err, runlane.ErrValidationFailed); e.Hint == "" {
			t.Fatalf("%v has no hint", e)
		}
	}
}

func drainReportsNextDue(t *testing.T, h Harness) {
	bounded, boundedHandler := limited(1, nil, succeed)
	plain, plainHandler := job("scenario.unbounded", nil, succeed)
	s := newScene(t, h, boundedHandler, plainHandler)
	first := s.trigger(bounded.With(jobPayload{}), &runlane.TriggerOptions{Delay: 10 * time.Minute})
	s.wantStatus(first, runlane.StatusQueued)
	want := core.DrainReport{Left: 1, NextDue: first.RunAt}
	drained := func() bool { // an index may be late, and a list may fail
		report := core.DrainReport{}
		s.must(s.rt.Work(s.Context(), &core.WorkOptions{
			Drain:       true,
			NoTick:      true,
			DrainWait:   -1,
			DrainReport: &report,
		}))
		return report == want
	}
	s.until("a drain reports the delayed run of a bounded queue", drained)
	s.trigger(plain.With(jobPayload{}), &runlane.TriggerOptions{Delay: 20 * time.Minute})
	want.Left = 2
	s.until("a drain reports the earlier of two delayed runs", drained)
}
