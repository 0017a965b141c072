package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// reopened is another deployment on the same storage, whose queue has another limit.
func (s *scene) reopened(limit int) *caller {
	s.Helper()
	_, handler := limited(limit, nil, succeed)
	s.options.Handlers = []runlane.Handler{handler}
	l, err := lane.New(s.lent(), s.faults.transport(s.transport), nil)
	s.must(err)
	return s.open(l)
}

func queueChanges(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	var runs []*runlane.Run
	for i := range 6 {
		runs = append(runs, s.trigger(task.With(jobPayload{N: i}), nil))
		s.clock.Advance(time.Millisecond)
	}
	s.wantSent("limit 1", runs[0])
	s.clock.Advance(time.Minute)

	s.rt = s.reopened(3)
	s.tick()
	s.wantSent("limit 3", runs[1], runs[2])

	s.rt = s.reopened(1)
	s.execute(runs[0])
	s.wantSent("limit 1 again: two hold slots still")
	s.execute(runs[1])
	s.wantSent("one holds a slot still")
	s.execute(runs[2])
	s.wantSent("below the limit", runs[3])

	s.rt = s.reopened(0)
	s.clock.Advance(time.Minute)
	s.tick()
	s.wantSent("no limit", runs[4:]...)
	for _, run := range runs[3:] {
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
}

func queueRetryUnbounded(t *testing.T, h Harness) {
	task, handler := limited(
		1,
		&runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 1 {
				return fmt.Errorf("no")
			}
			return nil
		},
	)
	s := newScene(t, h, handler)
	retried := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("one slot", retried)
	s.wantStatus(s.execute(retried), runlane.StatusRetrying)
	holder := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("the slot that the retry does not hold", holder)
	s.die(holder.ID)
	s.clock.Advance(50 * time.Second) // the holder's lease still lives
	s.tick()
	s.wantSent("no slot for the retry")

	s.rt = s.reopened(0)
	s.clock.Advance(time.Minute)
	s.tick()
	s.wantSent("no limit", retried, holder)
	s.wantStatus(s.execute(retried), runlane.StatusSucceeded)
}

func queueDeferred(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	// a conflict over the slot: who reserves it later also publishes
	if run.DispatchExpiresAt.IsZero() && s.faults.happened() {
		s.wantStatus(s.execute(s.reserved(run)), runlane.StatusSucceeded)
		return
	}
	s.wantSent("nothing by the trigger")
	s.wantHistory(run.ID, "created delivery_requested")
	if _, err := s.rt.PublishWakeups(s.Context(), s.storage.outboxIDs()); err != nil {
		t.Fatal(err)
	}
	s.wantSent("by the relay", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func queueDrains(t *testing.T, h Harness) {
	task, handler := limited(1, nil, succeed)
	s := newScene(t, h, handler)
	var runs []*runlane.Run
	for i := range 4 {
		runs = append(runs, s.trigger(task.With(jobPayload{N: i}), nil))
	}
	s.settle()
	s.must(s.rt.Work(s.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
	for range runs {
		if s.late() { // a drain does not see yet what has got a slot just now
			s.settle()
			s.must(s.rt.Work(s.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
		}
	}
	for _, run := range runs {
		s.wantStatus(s.get(run.ID), runlane.StatusSucceeded)
	}
}
