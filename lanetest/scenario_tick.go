package lanetest

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

func publishRefused(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.refused", nil, succeed)
	s := newScene(t, h, handler)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	run := s.trigger(task.With(jobPayload{}), nil)
	lines := s.logs.lines(t, "wakeup was not published; the outbox keeps it")
	if len(lines) != 1 || lines[0]["run_id"] != string(run.ID) || lines[0]["code"] != string(runlane.ErrTransportPublishFailed) {
		t.Fatalf("log lines are %v", lines)
	}
	s.transport.OnPublish(nil)
	s.tick()
	if sent := s.transport.TakePublished(); len(sent) != 0 {
		t.Fatalf("published %+v before the backoff was over", sent)
	}
	s.clock.Advance(time.Second)
	s.tick()
	if sent := s.transport.TakePublished(); len(sent) != 1 || sent[0].RunID != run.ID {
		t.Fatalf("published %+v", sent)
	}
	s.wantHistory(run.ID, "created delivery_requested")
}

func publishOutage(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.transport-outage", nil, succeed)
	for name, answer := range map[string]func(*lane.PublishCommand) ([]lane.PublishOutcome, error){
		"of the operation": func(*lane.PublishCommand) ([]lane.PublishOutcome, error) {
			return nil, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "scripted", Retryable: true}
		},
		"of each message": refused(runlane.ErrTransportUnavailable, false),
	} {
		s := newScene(t, h, handler)
		s.transport.OnPublish(answer)
		run := s.trigger(task.With(jobPayload{}), nil)
		for range 15 {
			s.clock.Advance(6 * time.Minute)
			result, err := s.rt.Tick(s.Context(), nil)
			if runlane.CodeOf(err) != runlane.ErrTransportUnavailable || result.Flushed.Failed == 0 && result.Redelivered.Failed == 0 {
				t.Fatalf("%s: tick is %+v, %v: the row is not tried again within six minutes", name, result, err)
			}
		}
		s.transport.OnPublish(nil)
		s.clock.Advance(6 * time.Minute)
		s.tick()
		if sent := s.transport.TakePublished(); !slices.ContainsFunc(sent, func(a lane.PublishAttempt) bool { return a.RunID == run.ID }) {
			t.Fatalf("%s: published %+v", name, sent)
		}
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
}

func publishViolation(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.violation", nil, succeed)
	for name, outcomes := range map[string][]lane.PublishOutcome{"none": {}, "an untagged one": {{}}} {
		s := newScene(t, h, handler)
		s.transport.OnPublish(func(*lane.PublishCommand) ([]lane.PublishOutcome, error) { return outcomes, nil })
		run := s.trigger(task.With(jobPayload{}), nil)
		s.transport.OnPublish(nil)
		s.clock.Advance(time.Minute)
		s.tick()
		if sent := s.transport.TakePublished(); len(sent) != 1 || sent[0].RunID != run.ID {
			t.Fatalf("%s: published %+v", name, sent)
		}
	}
}

func (s *scene) deadLetters() []runlane.DeadLetter {
	s.Helper()
	page, err := s.storage.ListDeadLetters(s.Context(), &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: s.rt.Environment()}})
	s.must(err)
	return page.Items
}

func publishTenTimes(t *testing.T, h RuntimeHarness) {
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
	if dead := s.deadLetters()[0]; dead.RunID != run.ID || dead.Attempts != 10 || dead.Failure.Code != runlane.ErrTransportPublishFailed {
		t.Fatalf("dead letter is %+v", dead)
	}
}

func publishPermanent(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.never", nil, succeed)
	s := newScene(t, h, handler)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, true))
	run := s.trigger(task.With(jobPayload{}), nil)
	s.until("the dead letter is listed", func() bool { return len(s.deadLetters()) == 1 })
	if dead := s.deadLetters()[0]; dead.RunID != run.ID || dead.Attempts != 1 {
		t.Fatalf("dead letter is %+v", dead)
	}
}

func publishUnmarked(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.unmarked", nil, succeed)
	s := newScene(t, h, handler)
	s.storage.script(func() { s.storage.onMark = func(func() error) error { return unavailableStorage("") } })
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() { s.storage.onMark = nil })
	s.transport.TakePublished()
	s.clock.Advance(runlane.DefaultOutboxClaim + 2*time.Minute) // the publisher might as well have died
	s.tick()
	if sent := s.transport.TakePublished(); len(sent) != 1 || sent[0].RunID != run.ID {
		t.Fatalf("published %+v", sent)
	}
}

func publishRelay(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.relay", nil, succeed)
	s := newScene(t, h, handler)
	first := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	id := s.storage.outboxIDs()[0]
	result, err := s.rt.PublishWakeups(s.Context(), []string{id, id})
	s.must(err)
	if sent := s.transport.TakePublished(); result.Done != 1 || len(sent) != 1 || sent[0].RunID != first.ID {
		t.Fatalf("result %+v, published %+v", result, sent)
	}
	result, err = s.rt.PublishWakeups(s.Context(), []string{id})
	s.must(err)
	if sent := s.transport.TakePublished(); result.Done != 0 || result.Skipped != 1 || len(sent) != 0 {
		t.Fatalf("again: result %+v, published %+v", result, sent)
	}
	if result, err := s.rt.PublishWakeups(s.Context(), nil); err != nil || result != (core.StageResult{}) {
		t.Fatalf("nothing given: %+v, %v", result, err)
	}
}

func tickScenarios() []scenario {
	return []scenario{
		{"the tick flushes the outbox", nil, tickFlushes, false},
		{"the tick delivers due waits", nil, tickDelivers, false},
		{"the tick publishes the row of a scheduled run and appends nothing", nil, tickScheduled, false},
		{"the tick sends delayed wakeups ahead of long waits", nil, tickAhead, false},
		{"the tick recovers a run whose lease is over", nil, tickRecovers, false},
		{"the tick fails a run that was abandoned too often", nil, tickBound, false},
		{"without a bound the tick recovers for ever", nil, tickNoBound, false},
		{"the tick finalizes cancellations", nil, tickCancels, false},
		{"the tick asks for lost wakeups again, unless the queue is behind", needsRedelivery, tickRedelivers, false},
		{"two ticks at once are harmless", nil, tickTwice, false},
		{"a stage that fails does not stop the next", nil, tickIsolated, false},
		{"an idle tick does nothing", nil, tickIdle, false},
		{"a tick is bounded and says when there is more", nil, tickBounded, false},
	}
}

func (s *scene) wantPublished(runs ...*runlane.Run) {
	s.Helper()
	var got, want []string
	for _, a := range s.transport.TakePublished() {
		got = append(got, string(a.RunID))
	}
	for _, run := range runs {
		want = append(want, string(run.ID))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Fatalf("published %v, want %v", got, want)
	}
}

func tickFlushes(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.flush", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.until("the row is found", func() bool { return s.tick().Flushed.Done == 1 })
	s.wantPublished(run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickDelivers(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.due", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 1 {
				return runlane.Release(time.Minute, "wait")
			}
			return nil
		})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	s.transport.TakePublished()
	s.tick()
	s.wantPublished()
	s.clock.Advance(time.Minute + 31*time.Second) // its delayed wakeup never came
	s.until("the wait is found", func() bool { return s.tick().Delivered.Done == 1 })
	s.wantPublished(run)
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickScheduled(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.scheduled", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.clock.Advance(time.Hour + time.Second)
	s.until("the run is found", func() bool {
		result := s.tick()
		return result.Delivered.Done+result.Flushed.Done == 1
	})
	s.wantPublished(run)
	s.wantHistory(run.ID, "created delivery_requested")
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickAhead(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.ahead", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.clock.Advance(58 * time.Minute)
	s.tick()
	if sent := s.transport.TakeDelayed(); len(sent) != 0 {
		t.Fatalf("sent two minutes ahead: %+v", sent)
	}
	s.clock.Advance(time.Minute)
	s.until("the wait is found", func() bool { return s.tick().Delivered.Done == 1 })
	sent := s.transport.TakeDelayed()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < time.Minute || sent[0].Delay > time.Minute+time.Second {
		t.Fatalf("sent ahead: %+v, want one after the remaining minute", sent)
	}
}

func tickRecovers(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.recover", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.transport.TakePublished()
	s.die(run.ID)
	s.tick()
	s.wantPublished()
	s.clock.Advance(3 * time.Minute)
	s.until("the run is found", func() bool { return s.tick().Delivered.Done == 1 })
	s.wantPublished(run)
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusSucceeded)
	if final.Counters != (runlane.Counters{Attempts: 2}) {
		t.Fatalf("counters are %+v, want an abandoned attempt that counts as no failure", final.Counters)
	}
	attempts, err := s.rt.Runs().Attempts(s.Context(), run.ID)
	s.must(err)
	if len(attempts) != 2 || attempts[0].Status != runlane.AttemptAbandoned || attempts[1].Status != runlane.AttemptSucceeded {
		t.Fatalf("attempts are %+v", attempts)
	}
}

func tickBound(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.bound", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	for n := range runlane.DefaultMaxAbandoned {
		s.die(run.ID)
		s.clock.Advance(3 * time.Minute)
		if n < runlane.DefaultMaxAbandoned-1 {
			s.until("the run is found", func() bool { return s.tick().Delivered.Done == 1 })
		}
	}
	s.until("the bound is seen", func() bool { return s.tick().Abandoned.Done == 1 })
	final := s.get(run.ID)
	s.wantStatus(final, runlane.StatusFailed)
	if final.Failure.Code != runlane.ErrLeaseExpired || final.Counters.Attempts != runlane.DefaultMaxAbandoned {
		t.Fatalf("run is %+v", final)
	}
}

func tickNoBound(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.unbounded", nil, succeed)
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, MaxAbandoned: -1}, nil)
	run := s.trigger(task.With(jobPayload{}), nil)
	for range 5 {
		s.die(run.ID)
		s.clock.Advance(3 * time.Minute)
		s.until("the run is found", func() bool { return s.tick().Delivered.Done == 1 })
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickCancels(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.finalize", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	s.change(run.ID, &runlane.RunCancellationRequested{})
	if result := s.tick(); result.Cancelled.Done != 0 {
		t.Fatal("cancelled while its owner may still finish")
	}
	s.clock.Advance(3 * time.Minute)
	s.until("the run is found", func() bool { return s.tick().Cancelled.Done == 1 })
	s.wantStatus(s.get(run.ID), runlane.StatusCancelled)
}

func tickRedelivers(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.redeliver", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantPublished(run) // and lost
	s.clock.Advance(11 * time.Minute)
	s.transport.SetDepth(101)
	for range 3 {
		if result := s.tick(); result.Redelivered.Done != 0 {
			t.Fatal("redelivered although the queue is behind")
		}
	}
	s.transport.SetDepth(100)
	s.until("the run is found", func() bool { return s.tick().Redelivered.Done == 1 })
	s.wantPublished(run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickTwice(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.twice", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			return runlane.Release(time.Minute, "wait")
		}
		return nil
	})
	s := newScene(t, h, handler)
	other, _ := s.second()
	const n = 20
	var runs []*runlane.Run
	for range n {
		run := s.trigger(task.With(jobPayload{}), nil)
		s.execute(run)
		runs = append(runs, run)
	}
	s.clock.Advance(3 * time.Minute)
	for range 5 { // an index may be late: a few rounds
		var group sync.WaitGroup
		for _, rt := range []*core.Runtime{s.rt, other} {
			group.Go(func() {
				if _, err := rt.Tick(s.Context(), nil); err != nil {
					t.Errorf("tick: %v", err)
				}
			})
		}
		group.Wait()
	}
	for _, run := range runs {
		s.wantHistory(run.ID, "created delivery_requested lease_claimed started released delivery_requested")
		s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	}
}

func tickIsolated(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.isolated", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.storage.script(func() { s.storage.onScan = func() error { return unavailableStorage("") } })
	s.until("the row is found", func() bool {
		result, err := s.rt.Tick(s.Context(), nil)
		if !errors.Is(err, runlane.ErrStorageUnavailable) || !errors.Is(result.Cancelled.Err, runlane.ErrStorageUnavailable) {
			t.Fatalf("error is %v", err)
		}
		return result.Flushed.Done == 1
	})
	s.wantPublished(run)
}

func tickIdle(t *testing.T, h RuntimeHarness) {
	_, handler := job("scenario.idle", nil, succeed)
	s := newScene(t, h, handler)
	if result := s.tick(); *result != (core.TickResult{}) {
		t.Fatalf("result is %+v", result)
	}
}

func tickBounded(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.bounded", nil, succeed)
	s := newScene(t, h, handler)
	var runs []*runlane.Run
	for range 5 {
		runs = append(runs, s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true}))
	}
	done := 0
	s.until("all rows are published", func() bool {
		result, err := s.rt.Tick(s.Context(), &core.TickOptions{Limit: 2})
		s.must(err)
		if result.Flushed.Done > 2 || result.More != (result.Flushed.Done == 2) {
			t.Fatalf("result is %+v", result)
		}
		done += result.Flushed.Done
		return done == 5
	})
	s.wantPublished(runs...)
	_, err := s.rt.Tick(s.Context(), &core.TickOptions{Limit: -1})
	s.wantCode(err, runlane.ErrValidationFailed)
	result, err := s.rt.Tick(s.Context(), &core.TickOptions{Deadline: s.clock.Now()})
	s.must(err)
	if !result.More {
		t.Fatal("a tick without time says that nothing is waiting")
	}
}
