package scenarios

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func publishScenarios() []scenario {
	return []scenario{
		{"a refused wakeup never fails a trigger and is published later", nil, publishRefused, false},
		{"an outage never fails a trigger and never dead-letters", nil, publishOutage, false},
		{"outcomes that break the contract count as an outage", nil, publishViolation, false},
		{"a message refused ten times is dead-lettered", needsDeadLetters, publishTenTimes, false},
		{"a message that can never be accepted is dead-lettered at once", needsDeadLetters, publishPermanent, false},
		{"a failed acknowledgement never fails a trigger", nil, publishUnmarked, false},
		{"the relay publishes deferred rows, just those it is given", nil, publishRelay, false},
	}
}

func publishRefused(t *testing.T, h Harness) {
	task, handler := job("scenario.refused", nil, succeed)
	s := newScene(t, h, handler)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	run := s.trigger(task.With(jobPayload{}), nil)
	lines := s.logs.lines(t, "wakeup was not published; the outbox keeps it")
	if len(lines) != 1 || lines[0]["run_id"] != string(run.ID) ||
		lines[0]["code"] != string(runlane.ErrTransportPublishFailed) {
		t.Fatalf("log lines are %v", lines)
	}
	s.transport.OnPublish(nil)
	s.tick()
	s.wantSent("before the backoff is over")
	s.clock.Advance(time.Second)
	s.tick()
	s.wantSent("after the backoff", run)
	s.wantHistory(run.ID, "created delivery_requested")
}

func publishOutage(t *testing.T, h Harness) {
	task, handler := job("scenario.transport-outage", nil, succeed)
	for name, answer := range map[string]func(*lane.PublishCommand) ([]lane.PublishOutcome, error){
		"of the operation": func(*lane.PublishCommand) ([]lane.PublishOutcome, error) {
			return nil, &runlane.Error{
				Code:      runlane.ErrTransportUnavailable,
				Message:   "scripted",
				Retryable: true,
				Cause:     errScripted,
			}
		},
		"of each message": refused(runlane.ErrTransportUnavailable, false),
	} {
		s := newScene(t, h, handler)
		s.transport.OnPublish(answer)
		run := s.trigger(task.With(jobPayload{}), nil)
		for range 15 {
			s.clock.Advance(6 * time.Minute)
			result, err := s.rt.Tick(s.Context(), nil)
			if runlane.CodeOf(err) != runlane.ErrTransportUnavailable ||
				result.Flushed.Failed == 0 && result.Redelivered.Failed == 0 {
				t.Fatalf("%s: tick is %+v, %v: the row is not tried again within six minutes", name, result, err)
			}
		}
		s.transport.OnPublish(nil)
		s.clock.Advance(6 * time.Minute)
		s.until(name+": published", func() bool {
			s.tick()
			return slices.ContainsFunc(s.transport.TakePublished(), func(a lane.PublishAttempt) bool {
				return a.RunID == run.ID
			})
		})
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
}

func publishViolation(t *testing.T, h Harness) {
	task, handler := job("scenario.violation", nil, succeed)
	for name, outcomes := range map[string][]lane.PublishOutcome{"none": {}, "an untagged one": {{}}} {
		s := newScene(t, h, handler)
		s.transport.OnPublish(func(*lane.PublishCommand) ([]lane.PublishOutcome, error) { return outcomes, nil })
		run := s.trigger(task.With(jobPayload{}), nil)
		s.transport.OnPublish(nil)
		s.clock.Advance(time.Minute)
		s.tick()
		s.wantSent(name, run)
	}
}

func (s *scene) deadLetters() []runlane.DeadLetter {
	s.Helper()
	s.settle()
	page, err := s.storage.ListDeadLetters(s.Context(), &lane.DeadLetterQuery{
		PageQuery: lane.PageQuery{Environment: s.rt.Environment()},
	})
	s.must(err)
	return page.Items
}

func publishTenTimes(t *testing.T, h Harness) {
	task, handler := job("scenario.ten", nil, succeed)
	s := newScene(t, h, handler)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	run := s.trigger(task.With(jobPayload{}), nil)
	for n := 2; n <= 10; n++ {
		if dead := s.deadLetters(); len(dead) != 0 {
			t.Fatalf("dead-lettered after %d refusals", n-1)
		}
		s.clock.Advance(5 * time.Minute)
		if _, err := s.rt.Tick(s.Context(), nil); runlane.CodeOf(err) != runlane.ErrTransportPublishFailed {
			t.Fatalf("tick %d: %v", n, err)
		}
	}
	s.until("the dead letter is listed", func() bool { return len(s.deadLetters()) == 1 })
	if dead := s.deadLetters()[0]; dead.RunID != run.ID || dead.Attempts != 10 ||
		dead.Failure.Code != runlane.ErrTransportPublishFailed {
		t.Fatalf("dead letter is %+v", dead)
	}
}

func publishPermanent(t *testing.T, h Harness) {
	task, handler := job("scenario.never", nil, succeed)
	s := newScene(t, h, handler)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, true))
	run := s.trigger(task.With(jobPayload{}), nil)
	s.until("the dead letter is listed", func() bool { return len(s.deadLetters()) == 1 })
	if dead := s.deadLetters()[0]; dead.RunID != run.ID || dead.Attempts != 1 {
		t.Fatalf("dead letter is %+v", dead)
	}
}

func publishUnmarked(t *testing.T, h Harness) {
	task, handler := job("scenario.unmarked", nil, succeed)
	s := newScene(t, h, handler)
	s.storage.script(func() { s.storage.onMark = func(func() error) error { return unavailableStorage("") } })
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() { s.storage.onMark = nil })
	s.wantSent("at once", run)
	s.clock.Advance(runlane.DefaultOutboxClaim + 2*time.Minute) // the publisher might as well have died
	s.tick()
	s.wantSent("once more", run)
}

func publishRelay(t *testing.T, h Harness) {
	task, handler := job("scenario.relay", nil, succeed)
	s := newScene(t, h, handler)
	first := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	id := s.storage.outboxIDs()[0]
	result, err := s.rt.PublishWakeups(s.Context(), []string{id, id})
	s.must(err)
	if result.Done != 1 {
		t.Fatalf("result %+v", result)
	}
	s.wantSent("just the one", first)
	result, err = s.rt.PublishWakeups(s.Context(), []string{id})
	s.must(err)
	if result.Done != 0 || result.Skipped != 1 {
		t.Fatalf("again: result %+v", result)
	}
	s.wantSent("nothing again")
	if result, err := s.rt.PublishWakeups(s.Context(), nil); err != nil || result != (core.StageResult{}) {
		t.Fatalf("nothing given: %+v, %v", result, err)
	}
}
