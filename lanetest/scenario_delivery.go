package lanetest

import (
	"context"
	"encoding/json"
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
		{"a run whose cancellation was requested is ignored", nil, deliveryCancellation, false},
		{"a run abandoned too often fails instead of being claimed", nil, deliveryAbandoned, false},
		{"a wakeup of another environment is handed back", nil, deliveryForeign, false},
		{"a run without a handler here is handed back and not failed", nil, deliveryUnknownTask, false},
		{"a storage that cannot be reached hands the wakeup back", nil, deliveryUnavailable, false},
		{"before a deadline the lease outlives it and the handler ends earlier", nil, deliveryDeadline, false},
		{"too little time before a deadline hands the wakeup back unclaimed", nil, deliveryNoTime, false},
		{"middleware wraps the attempt, the first one outermost", nil, deliveryMiddleware, false},
		{"the attempt's logger names run, task, queue and attempt", nil, deliveryLogger, false},
		{"logs never hold payloads", nil, deliveryLogsNoPayload, false},
	}
}

func deliveryClaims(t *testing.T, h RuntimeHarness) {
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
	if s.storage.appended()[1].LeaseToken != claimed.Lease.Token {
		t.Fatal("the outcome was not fenced by the lease's token")
	}
}

func deliveryNotFound(t *testing.T, h RuntimeHarness) {
	_, handler := job("scenario.none", nil, succeed)
	s := newScene(t, h, handler)
	if run := s.ignored(&runlane.Run{ID: "run_absent", Queue: "default"}, core.IgnoredNotFound); run != nil {
		t.Fatalf("result has the run %+v", run)
	}
}

func deliveryTerminal(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.terminal", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	s.ignored(run, core.IgnoredTerminal)
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded")
}

func deliveryNotDue(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.early", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: 10 * time.Minute})
	s.transport.TakeDelayed()
	s.clock.Advance(4 * time.Minute)
	s.ignored(run, core.IgnoredNotDue)
	sent := s.transport.TakeDelayed()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < 6*time.Minute || sent[0].Delay > 6*time.Minute+time.Second {
		t.Fatalf("sent again: %+v, want the remaining six minutes", sent)
	}
	s.transport.OnSend(func([]lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
		return nil, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "scripted", Retryable: true}
	})
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.wantCode(err, runlane.ErrTransportUnavailable) // handed back: else the run would wait for the tick
	s.transport.OnSend(nil)
	s.transport.SetMaxDelay(0)
	s.ignored(run, core.IgnoredNotDue) // where nothing can be delayed the tick finds it
	s.wantHistory(run.ID, "created delivery_requested")
}

func deliveryAlmostDue(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.moment", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Minute})
	s.clock.Advance(time.Minute - 50*time.Millisecond)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func deliverySkew(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.skew", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.clock.Advance(-5 * time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func deliveryWrongQueue(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.queue", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	other := *run
	other.Queue = "other"
	s.ignored(&other, core.IgnoredWrongQueue)
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
}

func deliveryLeased(t *testing.T, h RuntimeHarness) {
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

func deliveryClaimLost(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.lost", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onClaim = func(*lane.ClaimCommand, func() (*lane.Acquisition, error)) (*lane.Acquisition, error) {
			return &lane.Acquisition{Outcome: lane.LostSequence}, nil
		}
	})
	before := s.storage.readCount()
	s.ignored(run, core.IgnoredClaimLost)
	if claims, reads := len(s.storage.claimed()), s.storage.readCount()-before; claims != 4 || reads != 4 {
		t.Fatalf("%d claims after %d reads, want the first and three more", claims, reads)
	}
}

func deliveryClaimRetried(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.again", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() {
		s.storage.onClaim = func(_ *lane.ClaimCommand, next func() (*lane.Acquisition, error)) (*lane.Acquisition, error) {
			if len(s.storage.claimed()) == 1 { // a redelivery came in between
				now := runlane.UTCMillis(s.clock.Now())
				s.change(run.ID, Delivery(run, now, now))
			}
			return next()
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.wantHistory(run.ID, "created delivery_requested delivery_requested lease_claimed started succeeded")
}

func deliveryCancellation(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.cancelling", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	s.change(run.ID, &runlane.RunCancellationRequested{Reason: "enough"})
	s.ignored(run, core.IgnoredCancellation)
	s.clock.Advance(time.Hour)
	s.ignored(run, core.IgnoredCancellation) // finalizing is the tick's
}

func deliveryAbandoned(t *testing.T, h RuntimeHarness) {
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
	if len(attempts) != 3 || slices.ContainsFunc(attempts, func(a core.AttemptSummary) bool { return a.Status != runlane.AttemptAbandoned }) {
		t.Fatalf("attempts are %+v, want three abandoned ones", attempts)
	}
}

func deliveryForeign(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.foreign", nil, succeed)
	s := newScene(t, h, handler)
	w := s.wakeup(s.trigger(task.With(jobPayload{}), nil))
	w.Environment = "elsewhere"
	_, err := s.rt.ExecuteDelivery(s.Context(), w, nil)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func deliveryUnknownTask(t *testing.T, h RuntimeHarness) {
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

func deliveryUnavailable(t *testing.T, h RuntimeHarness) {
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
		s.storage.onClaim = func(_ *lane.ClaimCommand, next func() (*lane.Acquisition, error)) (*lane.Acquisition, error) {
			if _, err := next(); err != nil {
				return nil, err
			}
			return nil, unavailableStorage("unknown")
		}
	})
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func unavailableStorage(outcome string) error {
	e := &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "scripted", Retryable: true}
	if outcome != "" {
		e.Meta = map[string]string{"outcome": outcome}
	}
	return e
}

func deliveryDeadline(t *testing.T, h RuntimeHarness) {
	var left time.Duration
	task, handler := job("scenario.deadline", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return runlane.Permanent(runlane.ErrTaskFailed)
		}
		left = time.Until(deadline)
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	deadline := s.clock.Now().Add(100 * time.Second)
	result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), &core.DeliveryOptions{Deadline: deadline, WorkerID: "lambda-1"})
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusSucceeded)
	claimed, _ := s.history(run.ID)[2].Body.(*runlane.RunLeaseClaimed)
	end := claimed.Lease.ExpiresAt.Sub(deadline)
	if end < 5*time.Second || end > 5*time.Second+time.Millisecond || claimed.Lease.WorkerID != "lambda-1" {
		t.Fatalf("lease %+v ends %s after the deadline, want 5 s", claimed.Lease, end)
	}
	if left > 95*time.Second || left < 85*time.Second { // 5 % of 100 s are kept free; the rest is what the machine needed
		t.Fatalf("the handler had %s, want 95 s", left)
	}
}

func deliveryNoTime(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.hurry", &runlane.TaskOptions[jobPayload]{Timeout: 20 * time.Second}, succeed)
	plain, plainHandler := job("scenario.plain", nil, succeed)
	s := newScene(t, h, handler, plainHandler)
	for name, c := range map[string]struct {
		run  *runlane.Run
		left time.Duration
	}{
		"less than the timeout": {s.trigger(task.With(jobPayload{}), nil), 21 * time.Second},
		"less than 5 s":         {s.trigger(plain.With(jobPayload{}), nil), 6 * time.Second},
		"nothing":               {s.trigger(plain.With(jobPayload{}), nil), time.Second},
	} {
		_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(c.run), &core.DeliveryOptions{Deadline: s.clock.Now().Add(c.left)})
		if !errors.Is(err, core.ErrNoTime) || runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Errorf("%s: error is %v, want core.ErrNoTime", name, err)
		}
		s.wantStatus(s.get(c.run.ID), runlane.StatusQueued)
	}
	if n := len(s.storage.claimed()); n != 0 {
		t.Errorf("%d claims were tried", n)
	}
}

func deliveryMiddleware(t *testing.T, h RuntimeHarness) {
	type tag struct{}
	var order []string
	layer := func(name string) runlane.Middleware {
		return func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
			order = append(order, name+" before "+string(a.Run.TaskID))
			err := next(context.WithValue(ctx, tag{}, name))
			order = append(order, name+" after")
			return err
		}
	}
	task, handler := job("scenario.layers", nil, func(ctx context.Context, a *runlane.Attempt) error {
		order = append(order, "handler in "+ctx.Value(tag{}).(string))
		if runlane.AttemptFrom(ctx) != a {
			return runlane.Permanent(runlane.ErrInternal)
		}
		return nil
	})
	s := openScene(t, h, core.Options{
		Handlers: []runlane.Handler{handler}, Middleware: []runlane.Middleware{layer("outer"), layer("inner")},
	}, nil)
	s.wantStatus(s.execute(s.trigger(task.With(jobPayload{}), nil)), runlane.StatusSucceeded)
	want := "outer before scenario.layers, inner before scenario.layers, handler in inner, inner after, outer after"
	if got := strings.Join(order, ", "); got != want {
		t.Fatalf("order is\n  %s\nwant\n  %s", got, want)
	}
}

func deliveryLogger(t *testing.T, h RuntimeHarness) {
	task, handler := job("scenario.logger", nil, func(_ context.Context, a *runlane.Attempt) error {
		a.Logger().Info("from the handler", "extra", 1)
		a.Logger().With("extra", 1).Info("from the handler")
		a.Logger().WithGroup("group").Info("from the handler", "inside", 1)
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	lines := s.logs.lines(t, "from the handler")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for n, got := range lines {
		if got["run_id"] != string(run.ID) || got["task"] != "scenario.logger" || got["queue"] != "default" || got["attempt"] != 1.0 ||
			got["worker_id"] == nil || n < 2 && got["extra"] != 1.0 {
			t.Fatalf("attributes of line %d are %v", n+1, got)
		}
	}
}

func deliveryLogsNoPayload(t *testing.T, h RuntimeHarness) {
	const secret = "s3cr3t-and-unique"
	task := runlane.NewTask("scenario.secret", &runlane.TaskOptions[json.RawMessage]{Retry: runlane.Retry{MaxAttempts: 2}})
	s := newScene(t, h, task.Handle(func(_ context.Context, _ *runlane.Attempt, p json.RawMessage) error {
		return errors.New("cannot use " + string(p))
	}))
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	run := s.trigger(task.With(json.RawMessage(`"`+secret+`"`)), nil)
	s.execute(run)
	s.clock.Advance(time.Hour)
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusFailed)
	if s.logs.contains(secret) || strings.Contains(final.Failure.Message, secret) {
		t.Fatal("a payload was quoted")
	}
	failed := s.logs.lines(t, "run failed")
	if len(failed) != 1 || failed[0]["code"] != string(runlane.ErrTaskFailed) || failed[0]["run_id"] != string(run.ID) {
		t.Fatalf("log lines are %v", failed)
	}
}
