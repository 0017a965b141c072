package scenarios

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func pauseScenarios() []scenario {
	return []scenario{
		{"a paused queue starts nothing, and all its runs get a wakeup after it", nil, pauseQueue, false},
		{"a pause until a time ends by itself", nil, pauseUntil, false},
		{"a paused task holds no slot of its queue", needsSlots, pauseTask, false},
		{"waits that end in a pause, and slots, go on after it", needsSlots, pauseWaits, false},
		{"a queue that is paused again while it resumes stays paused", nil, pauseAgain, false},
		{"an ordered queue keeps its order over a pause", nil, pauseOrdered, false},
		{"a pause that cannot be is refused", nil, pauseRefused, false},
	}
}

var pauseWhy = &core.PauseOptions{ChangeOptions: core.ChangeOptions{Reason: "a fault downstream"}}

func (s *scene) pause(queue runlane.QueueName) {
	s.Helper()
	p, err := s.rt.Queues().Pause(s.Context(), queue, pauseWhy)
	s.must(err)
	if p.Queue != queue || p.Reason != pauseWhy.Reason || p.Actor != runlane.OperatorActor {
		s.Fatalf("pause is %+v", p)
	}
}

// paused are the entries of pauses.
func (s *scene) paused() []lane.Pause {
	s.Helper()
	p, err := s.rt.Queues().Pauses(s.Context())
	s.must(err)
	return p
}

// woken ticks until all runs have a wakeup, and takes those.
func (s *scene) woken(want ...*runlane.Run) {
	s.Helper()
	missing := map[runlane.RunID]bool{}
	for _, run := range want {
		missing[run.ID] = true
	}
	s.until("all runs have a wakeup", func() bool {
		for _, w := range s.transport.TakeDelayed() {
			delete(missing, w.RunID)
		}
		for _, w := range s.transport.TakePublished() {
			delete(missing, w.Wakeup.RunID)
		}
		s.clock.Advance(15 * time.Second)
		s.tick()
		return len(missing) == 0
	})
}

func (s *scene) forget() {
	s.transport.TakeDelayed()
	s.transport.TakePublished()
}

func pauseQueue(t *testing.T, h Harness) {
	task, handler := job("scenario.pause", nil, succeed)
	other, beside := job("scenario.beside", &runlane.TaskOptions[jobPayload]{Queue: runlane.Queue{Name: "beside"}}, succeed)
	s := newScene(t, h, handler, beside)
	before := s.trigger(task.With(jobPayload{}), nil)
	s.pause("default")
	during := s.trigger(task.With(jobPayload{}), nil)
	late := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.forget()
	written := len(s.history(before.ID))
	for _, run := range []*runlane.Run{before, during, late} {
		s.wantStatus(s.ignored(run, core.IgnoredPaused), runlane.StatusQueued)
		e := s.explains("paused", s.rt, run.ID, core.WaitPaused)
		if !strings.Contains(e.Next, `Queue "default" is paused since`) || !strings.Contains(e.Next, pauseWhy.Reason) {
			t.Fatalf("explained by %q", e.Next)
		}
	}
	s.clock.Advance(20 * time.Minute) // their wakeups count as lost meanwhile
	s.settle()
	s.tick()
	s.wantPublished()
	if n := len(s.history(before.ID)); n != written {
		t.Fatalf("%d events were written to a paused run", n-written)
	}
	next, err := s.rt.ExecuteNext(s.Context(), nil)
	s.must(err)
	if next.Run != nil {
		t.Fatalf("executed %+v", next.Run)
	}
	_, err = s.rt.RunNow(s.Context(), task.With(jobPayload{}), nil)
	if !errors.Is(err, runlane.ConflictPauses) {
		t.Fatalf("RunNow: %v", err)
	}
	s.wantStatus(s.execute(s.trigger(other.With(jobPayload{}), nil)), runlane.StatusSucceeded)
	s.forget()
	_, err = s.rt.Queues().Resume(s.Context(), "default", nil)
	s.must(err)
	s.woken(before, during, late)
	for _, run := range []*runlane.Run{before, during, late} {
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
	s.until("the entry goes", func() bool { s.tick(); return len(s.paused()) == 0 })
}

func pauseUntil(t *testing.T, h Harness) {
	task, handler := job("scenario.until", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	options := &core.PauseOptions{Until: s.clock.Now().Add(time.Hour)}
	_, err := s.rt.Queues().Pause(s.Context(), "default", options)
	s.must(err)
	s.ignored(run, core.IgnoredPaused)
	s.forget()
	s.clock.Advance(59 * time.Minute)
	s.tick()
	s.ignored(run, core.IgnoredPaused)
	s.clock.Advance(2 * time.Minute)
	s.woken(run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.until("the entry goes", func() bool { s.tick(); return len(s.paused()) == 0 })
}

func pauseTask(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	other, beside := job("scenario.beside", &runlane.TaskOptions[jobPayload]{Queue: handler.Task.Queue}, succeed)
	s := newScene(t, h, handler, beside)
	_, err := s.rt.Tasks().Pause(s.Context(), "scenario.limited", pauseWhy)
	s.must(err)
	run := s.reserved(s.trigger(task.With(jobPayload{}), nil))
	s.clock.Advance(time.Millisecond)
	second := s.trigger(other.With(jobPayload{}), nil)
	s.forget()
	s.ignored(run, core.IgnoredPaused)
	s.until("the slot is given to the next run", func() bool {
		s.tick()
		return !s.get(second.ID).DispatchExpiresAt.IsZero()
	})
	s.wantStatus(s.execute(second), runlane.StatusSucceeded)
	_, err = s.rt.Tasks().Resume(s.Context(), "scenario.limited", nil)
	s.must(err)
	s.woken(run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func pauseWaits(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	delayed := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Minute})
	first := s.reserved(s.trigger(task.With(jobPayload{}), nil))
	s.pause("limited")
	second := s.trigger(task.With(jobPayload{}), nil)
	s.ignored(first, core.IgnoredPaused)
	s.forget()
	s.clock.Advance(time.Hour)
	s.settle()
	s.tick()
	s.wantPublished()
	_, err := s.rt.Queues().Resume(s.Context(), "limited", nil)
	s.must(err)
	left := []*runlane.Run{delayed, first, second}
	s.until("each gets the slot and executes", func() bool {
		s.tick()
		left = slices.DeleteFunc(left, func(run *runlane.Run) bool {
			return lane.ReservationActive(s.get(run.ID), s.clock.Now()) &&
				s.execute(run).Status == runlane.StatusSucceeded
		})
		return len(left) == 0
	})
}

func pauseAgain(t *testing.T, h Harness) {
	task, handler := job("scenario.again", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.pause("default")
	s.ignored(run, core.IgnoredPaused)
	_, err := s.rt.Queues().Resume(s.Context(), "default", nil)
	s.must(err)
	s.pause("default")
	s.clock.Advance(time.Minute)
	s.tick()
	s.ignored(run, core.IgnoredPaused)
	if p := s.paused(); len(p) != 1 || !p[0].Active(s.clock.Now()) {
		t.Fatalf("pauses are %+v", p)
	}
	s.forget()
	rt, transport := s.second() // the one that resumed is gone
	_, err = s.rt.Queues().Resume(s.Context(), "default", nil)
	s.must(err)
	s.clock.Advance(15 * time.Second)
	s.settle()
	if len(s.transport.TakeDelayed())+len(s.transport.TakePublished()) == 0 && !s.faults.happened() {
		t.Fatal("nothing was woken at once")
	}
	if len(s.paused()) == 0 {
		return // near the storage all is done at once
	}
	_, err = rt.Tick(s.Context(), nil)
	s.must(err)
	if len(transport.TakeDelayed())+len(transport.TakePublished()) == 0 {
		t.Fatal("another process woke nothing")
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func pauseOrdered(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", nil, succeed)
	s := newOrderedScene(t, h, handler)
	var runs []*runlane.Run
	for range 3 {
		s.clock.Advance(time.Millisecond)
		runs = append(runs, s.trigger(task.With(jobPayload{}), nil))
	}
	s.pause("default")
	s.clock.Advance(time.Minute)
	for _, w := range s.taken() {
		s.offered(w, core.IgnoredPaused)
	}
	_, err := s.rt.Queues().Resume(s.Context(), "default", nil)
	s.must(err)
	s.clock.Advance(time.Millisecond)
	runs = append(runs, s.trigger(task.With(jobPayload{}), nil)) // before those that waited have their wakeups
	s.until("the list shows it", func() bool {
		page, err := s.rt.Runs().List(s.Context(), &core.ListOptions{RunFilter: core.RunFilter{Queue: "default"}})
		return err == nil && len(page.Items) == len(runs)
	})
	var wakeups []lane.Wakeup
	s.until("all are woken", func() bool {
		s.clock.Advance(15 * time.Second)
		s.tick()
		wakeups = append(wakeups, s.taken()...)
		p := s.paused()
		return len(p) == 1 && !p[0].WokenAt.IsZero()
	})
	var got, want []runlane.RunID
	for _, w := range wakeups {
		result, err := s.rt.ExecuteDelivery(s.Context(), w, nil)
		s.must(err)
		if result.Ignored == "" {
			got = append(got, w.RunID)
		}
	}
	for _, run := range runs {
		want = append(want, run.ID)
	}
	if !slices.Equal(got, want) && !s.faults.happened() {
		t.Fatalf("executed in the order %v, want %v", got, want)
	}
	s.until("the entry goes", func() bool {
		s.clock.Advance(time.Minute)
		s.tick()
		return len(s.paused()) == 0
	})
}

// taken are the published wakeups, in their order.
func (s *scene) taken() (wakeups []lane.Wakeup) {
	for _, a := range s.transport.TakePublished() {
		wakeups = append(wakeups, a.Wakeup)
	}
	return wakeups
}

func (s *scene) offered(w lane.Wakeup, want core.Ignored) {
	s.Helper()
	result, err := s.rt.ExecuteDelivery(s.Context(), w, nil)
	s.must(err)
	if result.Ignored != want {
		s.Fatalf("ignored as %q, want %q", result.Ignored, want)
	}
}

func pauseRefused(t *testing.T, h Harness) {
	_, handler := job("scenario.refused", nil, succeed)
	s := newScene(t, h, handler)
	long := &core.PauseOptions{ChangeOptions: core.ChangeOptions{Reason: string(make([]byte, lane.MaxPauseReasonBytes+1))}}
	for what, call := range map[string]func() error{
		"no name":     func() error { _, err := s.rt.Queues().Pause(s.Context(), "", nil); return err },
		"no task":     func() error { _, err := s.rt.Tasks().Pause(s.Context(), "a:b", nil); return err },
		"a long text": func() error { _, err := s.rt.Queues().Pause(s.Context(), "q", long); return err },
		"not paused":  func() error { _, err := s.rt.Queues().Resume(s.Context(), "q", nil); return err },
		"a time before": func() error {
			_, err := s.rt.Queues().Pause(s.Context(), "q", &core.PauseOptions{Until: s.clock.Now()})
			return err
		},
	} {
		if err := call(); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
	unknown, err := s.rt.Queues().Pause(s.Context(), "unknown", nil)
	s.must(err)
	again, err := s.rt.Queues().Pause(s.Context(), "unknown", &core.PauseOptions{Until: s.clock.Now().Add(time.Hour)})
	s.must(err)
	if !again.Since.Equal(unknown.Since) || again.Until.IsZero() || len(s.paused()) != 1 {
		t.Fatalf("paused again: %+v, then %+v", unknown, again)
	}
}
