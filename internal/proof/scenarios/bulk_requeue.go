package scenarios

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// giveUp makes a run whose wakeup can never be accepted.
func (s *scene) giveUp(task *runlane.Task[jobPayload], options *runlane.TriggerOptions) *runlane.Run {
	s.Helper()
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, true))
	run := s.trigger(task.With(jobPayload{}), options)
	s.transport.OnPublish(nil)
	return run
}

func bulkRequeues(t *testing.T, h Harness) {
	task, handler := job("scenario.requeue", nil, succeed)
	s := newScene(t, h, handler)
	run := s.giveUp(task, nil)
	s.settle()
	page, err := s.rt.DeadLetters().List(t.Context(), nil)
	s.must(err)
	if len(page.Items) != 1 || page.Items[0].RunID != run.ID ||
		page.Items[0].Failure.Code != runlane.ErrTransportPublishFailed ||
		page.Items[0].Attempts != 1 || page.Next != "" {
		t.Fatalf("dead letters are %+v", page)
	}
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	actor := runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}
	options := &core.ChangeOptions{Actor: actor, Reason: "queue is back"}
	s.must(s.rt.DeadLetters().Requeue(t.Context(), run.ID, options))
	s.wantHistory(run.ID, "created delivery_requested delivery_requested")
	requested := s.history(run.ID)[2]
	if requested.Actor != actor || requested.Meta["runlane.reason"] != "queue is back" {
		t.Errorf("the request is %+v", requested)
	}
	s.wantSent("its new wakeup", run)
	if left := s.deadLetters(); len(left) != 0 {
		t.Errorf("still given up: %+v", left)
	}
	if e := s.wantCode(
		s.rt.DeadLetters().Requeue(t.Context(), run.ID, options),
		runlane.ErrValidationFailed,
	); e.Hint == "" {
		t.Errorf("twice: %v", e)
	}
	s.wantCode(s.rt.DeadLetters().Requeue(t.Context(), "run_absent", nil), runlane.ErrRunNotFound)
	s.wantHistory(run.ID, "created delivery_requested delivery_requested")
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func bulkRequeuesBounded(t *testing.T, h Harness) {
	task, handler := explained("scenario.requeue-bounded")
	s := newScene(t, h, handler)
	busy := s.trigger(task.With(jobPayload{}), nil)
	s.die(busy.ID)
	run := s.giveUp(task, nil)
	s.explains("given up", s.rt, run.ID, core.WaitOperator)
	s.clock.Advance(3 * time.Minute) // its reservation is over
	taken := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("so far", busy, taken)
	s.must(s.rt.DeadLetters().Requeue(t.Context(), run.ID, nil))
	e := s.explains("requeued, and its slot was taken", s.rt, run.ID, core.WaitSlot)
	sameIDs(t, "holders", []runlane.RunID{busy.ID, taken.ID}, e.Holders)
	s.wantSent("for a run without a slot")
	s.settle()
	s.must(errorOf(s.rt.Runs().Cancel(t.Context(), taken.ID, nil))) // hands its slot over at once
	s.explains("a slot was freed", s.rt, run.ID, core.WaitReservation)
	s.wantSent("its slot", run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)

	free := s.giveUp(task, nil)
	s.wantSent("given up")
	s.must(s.rt.DeadLetters().Requeue(t.Context(), free.ID, nil))
	s.tickLate() // the hand-over has read an index
	s.explains("requeued, and a slot is free", s.rt, free.ID, core.WaitReservation)
}

func bulkRequeuesAll(t *testing.T, h Harness) {
	task, handler := job("scenario.requeue-all", nil, succeed)
	other, otherHandler := job("scenario.requeue-other", nil, succeed)
	s := newScene(t, h, handler, otherHandler)
	elsewhere := &runlane.TriggerOptions{Queue: runlane.Queue{Name: "elsewhere"}}
	for range 3 {
		s.giveUp(task, elsewhere)
	}
	kept := []runlane.RunID{s.giveUp(task, nil).ID, s.giveUp(other, elsewhere).ID}
	filter := core.RunFilter{Queue: "elsewhere", TaskID: "scenario.requeue-all"}
	var listed []runlane.RunID
	s.settle()
	for at := runlane.Cursor(""); ; {
		page, err := s.rt.DeadLetters().List(t.Context(), &core.ListOptions{RunFilter: filter, Limit: 2, After: at})
		s.must(err)
		for _, letter := range page.Items {
			listed = append(listed, letter.RunID)
		}
		if at = page.Next; at == "" {
			break
		}
		_, err = s.rt.DeadLetters().List(t.Context(), &core.ListOptions{Limit: 2, After: at})
		s.wantCode(err, runlane.ErrValidationFailed)
	}
	if len(listed) != 3 {
		t.Fatalf("listed %q", listed)
	}
	for _, dry := range []bool{true, false} {
		results := s.pages(func(at runlane.Cursor) (*core.BulkResult, error) {
			return s.rt.DeadLetters().RequeueAll(t.Context(), &core.BulkOptions{
				RunFilter: filter,
				Cap:       2,
				DryRun:    dry,
				After:     at,
			})
		})
		if dry {
			s.wantCounts("a dry run", results, 3, 0, 0)
		} else {
			s.wantCounts("requeueing", results, 3, 3, 0)
		}
	}
	var left []runlane.RunID
	for _, letter := range s.deadLetters() {
		left = append(left, letter.RunID)
	}
	sameIDs(t, "dead letters left", kept, left)
}
