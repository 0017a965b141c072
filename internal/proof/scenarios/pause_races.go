package scenarios

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func pauseRaceScenarios() []scenario {
	return []scenario{
		{"a pause that ends during a tick leaves no run without a wakeup", nil, pauseEndsInTick, false},
		{"a tick asks for no wakeups of a paused task", nil, pauseTaskTicks, false},
		{"the search after a pause wakes each run of an ordered queue once", nil, pauseWakesOnce, false},
		{"a run that cannot be written does not stop the search after a pause", nil, pauseBadRun, false},
		{"a process with an old answer does not end a pause's last minutes", nil, pauseOldAnswer, false},
		{"the entry of a resumed queue that nobody has goes", nil, pauseMistyped, false},
	}
}

func (s *scene) pauseUntil(until time.Time) {
	s.Helper()
	_, err := s.rt.Queues().Pause(s.Context(), "default", &core.PauseOptions{Until: until})
	s.must(err)
}

func pauseEndsInTick(t *testing.T, h Harness) {
	task, handler := job("scenario.ends-in-tick", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.pauseUntil(s.clock.Now().Add(10 * time.Second))
	s.ignored(run, core.IgnoredPaused)
	s.forget()
	s.storage.script(func() {
		s.storage.onScan = func() error { s.clock.Advance(45 * time.Second); return nil }
	})
	s.tick()
	s.storage.script(func() { s.storage.onScan = nil })
	woken := len(s.transport.TakeDelayed()) + len(s.transport.TakePublished())
	if len(s.paused()) == 0 && woken == 0 && !s.faults.happened() {
		t.Fatal("the search is over, and the run has no wakeup")
	}
}

func pauseTaskTicks(t *testing.T, h Harness) {
	task, handler := job("scenario.task-ticks", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.Tasks().Pause(s.Context(), run.TaskID, pauseWhy)
	s.must(err)
	s.ignored(run, core.IgnoredPaused)
	s.forget()
	before := len(s.history(run.ID))
	for range 3 {
		s.clock.Advance(20 * time.Minute)
		s.settle()
		s.tick()
	}
	if !s.faults.happened() {
		s.wantPublished()
	}
	if n := len(s.history(run.ID)); n != before {
		t.Fatalf("%d events were written to a run of a paused task", n-before)
	}
}

// pausedInOrder are runs of an ordered queue whose pause has just ended by time.
func (s *scene) pausedInOrder(task *runlane.Task[jobPayload], n int) (runs []*runlane.Run) {
	s.Helper()
	for range n {
		s.clock.Advance(time.Millisecond)
		runs = append(runs, s.trigger(task.With(jobPayload{}), nil))
	}
	s.pauseUntil(s.clock.Now().Add(time.Hour))
	s.forget()
	s.clock.Advance(time.Hour + 15*time.Second)
	s.settle()
	return runs
}

func (s *scene) tickTwoAtOnce() {
	s.Helper()
	s.clock.Advance(2 * time.Second)
	s.settle()
	_, err := s.rt.Tick(s.Context(), &core.TickOptions{Limit: 2})
	if s.faults == nil && err != nil {
		s.Logf("tick: %v", err)
	}
}

func pauseWakesOnce(t *testing.T, h Harness) {
	task, handler := job("scenario.wakes-once", nil, succeed)
	s := newOrderedScene(t, h, handler)
	runs := s.pausedInOrder(task, 5)
	for range 8 { // three would do; the wakeups of none are lost meanwhile
		s.tickTwoAtOnce()
	}
	if p := s.paused(); len(p) != 1 || p[0].WokenAt.IsZero() {
		if !s.faults.happened() {
			t.Fatalf("the search has not ended: %+v", p)
		}
	}
	for _, run := range runs {
		if n := len(s.history(run.ID)); n > 3 && !s.faults.happened() {
			t.Errorf("a run has %d events, want created and two requests", n)
		}
	}
}

func pauseBadRun(t *testing.T, h Harness) {
	task, handler := job("scenario.bad-run", nil, succeed)
	s := newOrderedScene(t, h, handler)
	runs := s.pausedInOrder(task, 4)
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if c.Projected.ID == runs[0].ID {
				return nil, &runlane.Error{Code: runlane.ErrInvariantViolation, Message: "a damaged run"}
			}
			return next()
		}
	})
	for range 8 {
		s.tickTwoAtOnce()
	}
	for _, run := range runs[1:] {
		if n := len(s.history(run.ID)); n != 3 && !s.faults.happened() {
			t.Errorf("run %s has %d events, want created and two requests", run.ID, n)
		}
	}
}

func pauseOldAnswer(t *testing.T, h Harness) {
	task, handler := job("scenario.old-answer", nil, succeed)
	s := newOrderedScene(t, h, handler)
	s.pausedInOrder(task, 1)
	s.until("all are woken", func() bool {
		s.tick()
		s.clock.Advance(time.Second)
		p := s.paused()
		return len(p) == 1 && !p[0].WokenAt.IsZero()
	})
	old := s.paused()
	old[0].WokenAt = time.Time{}
	s.storage.script(func() { s.storage.oldPauses = old })
	s.tick()
	if len(s.paused()) == 0 {
		t.Fatal("the entry is gone at once: wakeups that are to be dropped would be executed")
	}
}

func pauseMistyped(t *testing.T, h Harness) {
	_, handler := job("scenario.mistyped", nil, succeed)
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}}, func(s *scene) {
		s.transport.Bind(runlane.DefaultQueue.Name)
	})
	s.pause("defualt")
	_, err := s.rt.Queues().Resume(s.Context(), "defualt", nil)
	s.must(err)
	s.clock.Advance(25 * time.Hour)
	s.until("the entry goes", func() bool { s.tick(); s.clock.Advance(time.Minute); return len(s.paused()) == 0 })
}

// GetPauses gives an old answer, if there is one, to those who may get it.
func (s *scriptedStorage) GetPauses(ctx context.Context, q lane.PausesQuery) (lane.Pauses, error) {
	s.mu.Lock()
	old := slices.Clone(s.oldPauses)
	s.mu.Unlock()
	if len(old) > 0 && !q.Exact {
		return lane.Pauses{Entries: old}, nil
	}
	return s.Storage.GetPauses(ctx, q)
}
