package scenarios

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

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
		{"the tick looks behind pages that hold nothing", needsQueues, tickLooksBehind, false},
		{"rows of a queue that takes nothing hide no other queue's", nil, tickBesideLost, false},
		{"the tick asks for lost wakeups again, unless the queue is behind", needsRedelivery, tickRedelivers, false},
		{"two ticks at once are harmless", nil, tickTwice, false},
		{"a stage that fails does not stop the next", nil, tickIsolated, false},
		{"an idle tick does nothing", nil, tickIdle, false},
		{"a tick is bounded and says when there is more", nil, tickBounded, false},
	}
}

func tickFlushes(t *testing.T, h Harness) {
	task, handler := job("scenario.flush", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.until("the row is found", func() bool { return s.tick().Flushed.Done == 1 })
	s.wantPublished(run)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickDelivers(t *testing.T, h Harness) {
	task, handler := job("scenario.due", &runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if a.Number == 1 {
				return runlane.Release(time.Minute, "wait")
			}
			return nil
		})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("at once", run)
	s.execute(run)
	s.tick()
	s.wantPublished()
	s.clock.Advance(time.Minute + 31*time.Second) // its delayed wakeup never came
	s.until("the wait is found", func() bool { return s.tick().Delivered.Done == 1 })
	s.wantPublished(run)
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func tickScheduled(t *testing.T, h Harness) {
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

func tickAhead(t *testing.T, h Harness) {
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
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < time.Minute ||
		sent[0].Delay > time.Minute+time.Second {
		t.Fatalf("sent ahead: %+v, want one after the remaining minute", sent)
	}
}

func tickRecovers(t *testing.T, h Harness) {
	task, handler := job("scenario.recover", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantSent("at once", run)
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
	if len(attempts) != 2 || attempts[0].Status != runlane.AttemptAbandoned ||
		attempts[1].Status != runlane.AttemptSucceeded {
		t.Fatalf("attempts are %+v", attempts)
	}
}

func tickBound(t *testing.T, h Harness) {
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

func tickNoBound(t *testing.T, h Harness) {
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

func tickCancels(t *testing.T, h Harness) {
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

// A queue that is gone takes none of its wakeups, which are more than a stage tries, and come first. Its rows are kept.
func tickBesideLost(t *testing.T, h Harness) {
	const lost, limit = 25, 2
	task, handler := job("scenario.beside", nil, succeed)
	gone, goneHandler := job(
		"scenario.gone",
		&runlane.TaskOptions[jobPayload]{Queue: runlane.Queue{Name: "gone"}},
		succeed,
	)
	s := newScene(t, h, handler, goneHandler)
	var kept []*runlane.Run
	for i := range lost {
		kept = append(
			kept,
			s.trigger(gone.With(jobPayload{}), &runlane.TriggerOptions{
				Deferred: true,
				Delay:    time.Duration(i%2) * time.Millisecond,
			}),
		)
	}
	s.transport.OnPublish(func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
		outcomes := make([]lane.PublishOutcome, len(c.Attempts))
		for i := range outcomes {
			outcomes[i] = lane.PublishOutcome{Type: lane.Published}
			if c.Attempts[i].Queue == "gone" {
				outcomes[i] = lane.PublishOutcome{
					Type:    lane.PublishFailed,
					Failure: runlane.NewFailure(runlane.ErrTransportUnavailable, "scripted", nil),
				}
			}
		}
		return outcomes, nil
	})
	s.clock.Advance(time.Hour)
	runs := []*runlane.Run{
		s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true}),
		s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true, Delay: time.Millisecond}),
	}
	s.clock.Advance(time.Minute)
	done := 0
	s.until("the other queue's are published", func() bool {
		result, err := s.rt.Tick(s.Context(), &core.TickOptions{Limit: limit})
		if err != nil {
			s.wantCode(err, runlane.ErrTransportUnavailable)
		}
		done += result.Delivered.Done + result.Flushed.Done
		return done == len(runs)
	})
	s.wantStatus(s.execute(runs[0]), runlane.StatusSucceeded)
	s.wantStatus(s.execute(runs[1]), runlane.StatusSucceeded)
	s.transport.OnPublish(nil)
	s.clock.Advance(6 * time.Minute)
	s.until("nothing was given up", func() bool {
		result, err := s.rt.Tick(s.Context(), &core.TickOptions{Repeat: true})
		s.must(err)
		done += result.Delivered.Done + result.Flushed.Done
		return done == len(runs)+lost
	})
	s.wantStatus(s.execute(kept[0]), runlane.StatusSucceeded)
}

func tickRedelivers(t *testing.T, h Harness) {
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

func tickTwice(t *testing.T, h Harness) {
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
		for _, rt := range []*caller{s.rt, other} {
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

func tickIsolated(t *testing.T, h Harness) {
	task, handler := job("scenario.isolated", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.storage.script(func() { s.storage.onScan = func() error { return unavailableStorage("") } })
	s.until("the row is found", func() bool {
		result, err := s.rt.Tick(s.Context(), nil)
		if !errors.Is(err, runlane.ErrStorageUnavailable) ||
			!errors.Is(result.Cancelled.Err, runlane.ErrStorageUnavailable) {
			t.Fatalf("error is %v", err)
		}
		return result.Flushed.Done == 1
	})
	s.wantPublished(run)
}

func tickIdle(t *testing.T, h Harness) {
	_, handler := job("scenario.idle", nil, succeed)
	s := newScene(t, h, handler)
	if result := s.tick(); *result != (core.TickResult{}) {
		t.Fatalf("result is %+v", result)
	}
}

func tickBounded(t *testing.T, h Harness) {
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
