package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func deliveryScenarios() []scenario {
	return []scenario{
		{"claim and start are one commit under one lease", nil, deliveryClaims, false},
		{"a run that does not exist is ignored", nil, deliveryNotFound, false},
		{"a finished run is ignored", nil, deliveryTerminal, false},
		{"a run that waits is ignored and its wakeup sent again", nil, deliveryNotDue, false},
		{"a wakeup that is a moment early waits for it", nil, deliveryAlmostDue, false},
		{"a queued run is due although its writer's clock is ahead", nil, deliverySkew, false},
		{"a wakeup of another queue is ignored", nil, deliveryWrongQueue, false},
		{"a run that a worker owns is ignored", nil, deliveryLeased, false},
		{"a claim that is lost again and again is ignored", nil, deliveryClaimLost, false},
		{"a claim that is lost once is tried again", nil, deliveryClaimRetried, false},
		{"a claim whose answer was lost is told of a cancellation", nil, deliveryUnheardCancelled, false},
		{"a claim of a run that was pruned does not take the next one of its id", needsPruning, deliveryReused, false},
		{"a run whose cancellation was requested is ignored", nil, deliveryCancellation, false},
		{"a run abandoned too often fails instead of being claimed", nil, deliveryAbandoned, false},
		{"only attempts that were abandoned in a row count", nil, deliveryAbandonedInARow, false},
		{"a wakeup of another environment is handed back", nil, deliveryForeign, false},
		{"a run without a handler here is handed back and not failed", nil, deliveryUnknownTask, false},
		{"a storage that cannot be reached hands the wakeup back", nil, deliveryUnavailable, false},
		{"before a deadline the lease outlives it and the handler ends earlier", nil, deliveryDeadline, false},
		{"too little time before a deadline hands the wakeup back unclaimed", nil, deliveryNoTime, false},
		{"behind others of its group a task begins only with nearly all of the time", nil, deliveryFollows, false},
		{"a task that no invocation has time for is never claimed", nil, deliveryNeverFits, false},
		{"middleware wraps the attempt, the first one outermost", nil, deliveryMiddleware, false},
		{"the attempt's logger names run, task, queue and attempt", nil, deliveryLogger, false},
		{"logs never hold payloads", nil, deliveryLogsNoPayload, false},
		{"the last progress note of an attempt is there for everybody", nil, deliveryProgress, false},
	}
}

func deliveryClaims(t *testing.T, h Harness) {
	task, handler := job("scenario.claim", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	claims := s.storage.claimed()
	if len(claims) != 1 || len(claims[0].Events) != 2 || !claims[0].ByWakeup {
		t.Fatalf("claims are %+v, want one of two events by wakeup", claims)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
	claimed, ok := s.history(run.ID)[2].Body.(*runlane.RunLeaseClaimed)
	if !ok || claimed.Lease.Token == "" || claimed.Lease.WorkerID == "" ||
		claimed.Lease.ExpiresAt.Sub(runlane.UTCMillis(s.clock.Now())) != runlane.DefaultLease {
		t.Fatalf("lease is %+v", claimed)
	}
	if appended := s.storage.appended(); appended[len(appended)-1].LeaseToken != claimed.Lease.Token {
		t.Fatal("the outcome was not fenced by the lease's token")
	}
}

func deliveryNotFound(t *testing.T, h Harness) {
	_, handler := job("scenario.none", nil, succeed)
	s := newScene(t, h, handler)
	if run := s.ignored(&runlane.Run{ID: "run_absent", Queue: "default"}, core.IgnoredNotFound); run != nil {
		t.Fatalf("result has the run %+v", run)
	}
}

func deliveryTerminal(t *testing.T, h Harness) {
	task, handler := job("scenario.terminal", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	s.ignored(run, core.IgnoredTerminal)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func deliveryNotDue(t *testing.T, h Harness) {
	task, handler := job("scenario.early", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: 10 * time.Minute})
	s.transport.TakeDelayed()
	s.clock.Advance(4 * time.Minute)
	s.ignored(run, core.IgnoredNotDue)
	sent := s.transport.TakeDelayed()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < 6*time.Minute ||
		sent[0].Delay > 6*time.Minute+time.Second {
		t.Fatalf("sent again: %+v, want the remaining six minutes", sent)
	}
	s.transport.OnSend(func([]lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
		return nil, &runlane.Error{
			Code:      runlane.ErrTransportUnavailable,
			Message:   "scripted",
			Retryable: true,
			Cause:     errScripted,
		}
	})
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.wantCode(err, runlane.ErrTransportUnavailable) // handed back: else the run would wait for the tick
	s.transport.OnSend(nil)
	s.transport.SetMaxDelay(0)
	s.ignored(run, core.IgnoredNotDue) // where nothing can be delayed the tick finds it
	s.wantHistory(run.ID, "created delivery_requested")
}

func deliveryAlmostDue(t *testing.T, h Harness) {
	task, handler := job("scenario.moment", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Minute})
	s.clock.Advance(time.Minute - 50*time.Millisecond)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func deliverySkew(t *testing.T, h Harness) {
	task, handler := job("scenario.skew", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(-5 * time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func deliveryWrongQueue(t *testing.T, h Harness) {
	task, handler := job("scenario.queue", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	other := *run
	other.Queue = "other"
	s.ignored(&other, core.IgnoredWrongQueue)
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
}

func deliveryLeased(t *testing.T, h Harness) {
	task, handler := job("scenario.leased", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	s.clock.Advance(time.Minute - time.Millisecond)
	s.ignored(run, core.IgnoredLeased)
	s.clock.Advance(time.Millisecond) // over at its very millisecond
	after := s.execute(run)
	s.wantStatus(after, runlane.StatusSucceeded)
	if after.Counters.Attempts != 2 || after.Counters.Failures != 0 {
		t.Fatalf("counters are %+v, want a second attempt and no failure", after.Counters)
	}
}

// neverAcquired is a claim for which another one is always faster.
func neverAcquired(*lane.ClaimCommand, func() (*lane.Acquisition, error)) (*lane.Acquisition, error) {
	return &lane.Acquisition{Outcome: lane.LostSequence}, nil
}

func deliveryClaimLost(t *testing.T, h Harness) {
	task, handler := job("scenario.lost", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() { s.storage.onClaim = neverAcquired })
	before := s.storage.readCount()
	s.ignored(run, core.IgnoredClaimLost)
	if claims, reads := len(s.storage.claimed()), s.storage.readCount()-before; claims != 4 || reads != 4 {
		t.Fatalf("%d claims after %d reads, want the first and three more", claims, reads)
	}
}

func deliveryClaimRetried(t *testing.T, h Harness) {
	task, handler := job("scenario.again", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onClaim = func(
			_ *lane.ClaimCommand, next func() (*lane.Acquisition, error),
		) (*lane.Acquisition, error) {
			if len(s.storage.claimed()) == 1 { // a redelivery came in between
				now := runlane.UTCMillis(s.clock.Now())
				s.change(run.ID, &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
					Environment: run.Environment, RunID: run.ID, Queue: run.Queue, AvailableAt: now, RequestedAt: now,
				}})
			}
			return next()
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantHistory(run.ID, "created delivery_requested delivery_requested lease_claimed started succeeded")
}

// told is a handler that was told of a cancellation before it began.
func told(ctx context.Context, _ *runlane.Attempt) error {
	if !errors.Is(context.Cause(ctx), runlane.ErrCancelRequested) {
		return errors.New("it was not told")
	}
	return ctx.Err()
}

// Another process cancels the run after the claim was committed and before its worker reads whether it was.
func deliveryUnheardCancelled(t *testing.T, h Harness) {
	task, handler := job("scenario.unheard", nil, told)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onClaim = func(
			_ *lane.ClaimCommand, next func() (*lane.Acquisition, error),
		) (*lane.Acquisition, error) {
			if got, err := next(); err != nil || got.Outcome != lane.Acquired {
				return got, err
			}
			s.change(run.ID, &runlane.RunCancellationRequested{})
			return nil, unavailableStorage("unknown")
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusCancelled)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started cancellation_requested cancelled")
}

// A worker pauses between its read and its claim. Meanwhile the run is cancelled and pruned, and its id is used for
// another run.
func deliveryReused(t *testing.T, h Harness) {
	var executed []string
	task, handler := job("scenario.reused", nil, func(_ context.Context, a *runlane.Attempt) error {
		executed = append(executed, string(a.Run.Payload))
		return nil
	})
	s := newScene(t, h, handler)
	options := &runlane.TriggerOptions{RunID: "run_order_17"}
	first := s.trigger(task.With(jobPayload{N: 1}), options)
	var second *runlane.Run
	s.storage.script(func() {
		s.storage.onClaim = func(
			_ *lane.ClaimCommand, next func() (*lane.Acquisition, error),
		) (*lane.Acquisition, error) {
			if second == nil {
				s.change(first.ID, &runlane.RunCancelled{})
				s.clock.Advance(time.Minute)
				s.pruneUntilGone(first.ID)
				second = s.trigger(task.With(jobPayload{N: 2}), options)
			}
			return next()
		}
	})
	run := s.execute(first)
	s.wantStatus(run, runlane.StatusSucceeded)
	if !slices.Equal(executed, []string{`{"n":2}`}) || !run.CreatedAt.Equal(second.CreatedAt) {
		t.Fatalf("executed %v; the run is %+v, and the second was %+v", executed, run, second)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

// pruneUntilGone removes a finished run as another process would.
func (s *scene) pruneUntilGone(id runlane.RunID) {
	s.Helper()
	s.until("the run is pruned", func() bool {
		_, err := s.storage.Storage.PruneRuns(s.Context(), &lane.PruneCommand{
			PageQuery: lane.PageQuery{Environment: s.rt.Environment()}, OlderThan: s.clock.Now(),
		})
		s.must(err)
		_, err = s.storage.Storage.GetRun(s.Context(), s.key(id))
		return errors.Is(err, runlane.ErrRunNotFound)
	})
	s.faults.forget(id)
}

func deliveryCancellation(t *testing.T, h Harness) {
	task, handler := job("scenario.cancelling", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	s.change(run.ID, &runlane.RunCancellationRequested{Reason: "enough"})
	s.ignored(run, core.IgnoredCancellation)
	s.clock.Advance(time.Hour)
	s.ignored(run, core.IgnoredCancellation) // finalizing is the tick's
}

func deliveryAbandoned(t *testing.T, h Harness) {
	task, handler := job("scenario.abandoned", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	for range runlane.DefaultMaxAbandoned {
		s.die(run.ID)
		s.clock.Advance(time.Minute)
	}
	failed := s.ignored(run, core.IgnoredAbandoned)
	s.wantStatus(failed, runlane.StatusFailed)
	s.sameAsStored(failed)
	if failed.Failure.Code != runlane.ErrLeaseExpired {
		t.Fatalf("failure is %+v", failed.Failure)
	}
	attempts, err := s.rt.Runs().Attempts(s.Context(), run.ID)
	s.must(err)
	if len(attempts) != 3 ||
		slices.ContainsFunc(attempts, func(a core.AttemptSummary) bool {
			return a.Status != runlane.AttemptAbandoned
		}) {
		t.Fatalf("attempts are %+v, want three abandoned ones", attempts)
	}
}

// Four attempts are abandoned, and one in the middle has an outcome: two and two in a row, with a bound of three.
func deliveryAbandonedInARow(t *testing.T, h Harness) {
	task, handler := job("scenario.in-a-row", nil, func(context.Context, *runlane.Attempt) error {
		return runlane.Release(time.Minute, "an outcome")
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	twice := func() {
		for range runlane.DefaultMaxAbandoned - 1 {
			s.die(run.ID)
			s.clock.Advance(time.Minute)
		}
	}
	recovered := func() {
		s.clock.Advance(2 * time.Minute)
		s.until("the run is found", func() bool {
			result := s.tick()
			if result.Abandoned.Done != 0 {
				t.Fatalf("the tick failed it: %+v", s.get(run.ID))
			}
			return result.Delivered.Done == 1
		})
	}
	twice()
	s.wantStatus(s.execute(run), runlane.StatusReleased)
	s.clock.Advance(2 * time.Minute)
	twice()
	if e, err := s.rt.Runs().Explain(s.Context(), run.ID); err != nil || !strings.Contains(e.Next, "last 2 attempts") {
		t.Errorf("explained: %+v, %v", e, err)
	}
	recovered()
	s.wantStatus(s.execute(run), runlane.StatusReleased) // by a wakeup, which counts as well
	s.clock.Advance(2 * time.Minute)
	recovered()
	if e, err := s.rt.Runs().Explain(s.Context(), run.ID); err != nil ||
		strings.Contains(e.Next, "without an outcome") {
		t.Errorf("explained when it was released, and asked for again: %+v, %v", e, err)
	}
	twice()
	s.die(run.ID) // the third in a row
	s.clock.Advance(time.Minute)
	failed := s.ignored(run, core.IgnoredAbandoned)
	s.wantStatus(failed, runlane.StatusFailed)
	if failed.Failure.Code != runlane.ErrLeaseExpired || failed.Counters.Attempts != 9 {
		t.Fatalf("the run is %+v", failed)
	}
}

func deliveryForeign(t *testing.T, h Harness) {
	task, handler := job("scenario.foreign", nil, succeed)
	s := newScene(t, h, handler)
	w := s.wakeup(s.trigger(task.With(jobPayload{}), nil))
	w.Environment = "elsewhere"
	_, err := s.rt.ExecuteDelivery(s.Context(), w, nil)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func deliveryUnknownTask(t *testing.T, h Harness) {
	_, handler := job("scenario.known", nil, succeed)
	stranger := runlane.NewTask[jobPayload]("scenario.unknown", nil)
	s := newScene(t, h, handler)
	run := s.trigger(stranger.With(jobPayload{}), nil)
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	if e := s.wantCode(err, runlane.ErrTaskNotFound); e.RunID != run.ID {
		t.Fatalf("error names %q", e.RunID)
	}
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
}

func deliveryUnavailable(t *testing.T, h Harness) {
	task, handler := job("scenario.outage", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onClaim = func(*lane.ClaimCommand, func() (*lane.Acquisition, error)) (*lane.Acquisition, error) {
			return nil, unavailableStorage("")
		}
	})
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.wantCode(err, runlane.ErrStorageUnavailable)

	s.storage.script(func() { // the answer of a claim that was written is lost
		s.storage.onClaim = func(
			_ *lane.ClaimCommand, next func() (*lane.Acquisition, error),
		) (*lane.Acquisition, error) {
			if _, err := next(); err != nil {
				return nil, err
			}
			return nil, unavailableStorage("unknown")
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func unavailableStorage(outcome string) error {
	e := &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "scripted", Retryable: true, Cause: errScripted}
	if outcome != "" {
		e.Meta = map[string]string{"outcome": outcome}
	}
	return e
}
