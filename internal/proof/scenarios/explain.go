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

func explainScenarios() []scenario {
	slots := needsBoth(needsSlots, needsOutbox)
	return []scenario{
		{"a finished run waits for nothing", nil, explainNone, false},
		{"a waiting run is explained by its time", nil, explainTime, false},
		{"a wakeup that is not handed over is explained with its failure", needsOutbox, explainPublish, false},
		{"a wakeup that was handed over is explained by its redelivery", needsRedelivery, explainWakeup, false},
		{"a running run is explained by its lease and owner", nil, explainLease, false},
		{"a requested cancellation is explained by its owner", nil, explainCancellation, false},
		{"what the next tick takes is explained by it", nil, explainTick, false},
		{"a given-up wakeup is explained by its failure", needsDeadLetters, explainOperator, false},
		{"a full queue is explained by who holds its slots", slots, explainSlot, false},
		{"a reserved slot is explained by its end", slots, explainReservation, false},
		{"a queue that this runtime does not know is named", slots, explainQueue, false},
		{"a run of a task that no program has says so", nil, explainUnhandled, false},
		{"a run in a queue that no program is known to serve says so", nil, explainElsewhere, false},
		{"a run that does not exist is not explained", nil, explainAbsent, false},
	}
}

// explains demands a wait, and that everything that does not belong to it is zero.
func (s *scene) explains(what string, rt *caller, id runlane.RunID, want core.Wait) *core.Explanation {
	s.Helper()
	e, err := rt.Runs().Explain(s.Context(), id)
	s.must(err)
	run := s.get(id)
	if e.RunID != id || e.Status != run.Status || e.Wait != want || e.Next == "" {
		s.Fatalf("%s: %+v, want the wait %q of the %s run", what, e, want, run.Status)
	}
	if s.waits != nil {
		s.waits.Store(want, true)
	}
	endless := want == core.WaitNone || want == core.WaitOperator || want == core.WaitQueue ||
		want == core.WaitPaused ||
		e.Waiting != nil && e.Waiting.Until.IsZero()
	if e.Until.IsZero() != endless || !endless && !e.Until.After(runlane.UTCMillis(s.clock.Now())) {
		s.Errorf("%s: it waits until %v, now is %v", what, e.Until, s.clock.Now())
	}
	if (len(e.Holders) > 0) != (want == core.WaitSlot) {
		s.Errorf("%s: holders are %v", what, e.Holders)
	}
	owned := want == core.WaitLease || want == core.WaitCancellation
	if (e.Owner.WorkerID != "") != owned || e.Owner.Token != "" {
		s.Errorf("%s: the owner is %+v", what, e.Owner)
	}
	return e
}

func (s *scene) wantUntil(what string, e *core.Explanation, want time.Time) {
	s.Helper()
	if want = runlane.UTCMillis(want); !e.Until.Equal(want) {
		s.Errorf("%s: it waits until %v, want %v", what, e.Until, want)
	}
}

func explainNone(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-end", nil, func(_ context.Context, a *runlane.Attempt) error {
		if len(a.Run.Meta) > 0 {
			return errors.New("always")
		}
		return nil
	})
	s := newScene(t, h, handler)
	s.explains("succeeded", s.rt, s.succeeded(task).ID, core.WaitNone)
	failed := s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Meta: operateMeta()}))
	if e := s.explains("failed", s.rt, failed.ID, core.WaitNone); e.Failure.Code != runlane.ErrTaskFailed {
		t.Errorf("failure is %+v", e.Failure)
	}
	cancelled, err := s.rt.Runs().Cancel(t.Context(), s.trigger(task.With(jobPayload{}), nil).ID, nil)
	s.must(err)
	s.explains("cancelled", s.rt, cancelled.ID, core.WaitNone)
}

func explainTime(t *testing.T, h Harness) {
	task, handler := job(
		"scenario.explain-time",
		&runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(_ context.Context, a *runlane.Attempt) error {
			if len(a.Run.Meta) > 0 {
				return runlane.Release(time.Hour, "not yet")
			}
			return runlane.RetryAfter(time.Hour, errors.New("once"))
		},
	)
	s := newScene(t, h, handler)
	for _, run := range []*runlane.Run{
		s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour}),
		s.execute(s.trigger(task.With(jobPayload{}), nil)),
		s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Meta: operateMeta()})),
	} {
		e := s.explains(string(run.Status), s.rt, run.ID, core.WaitTime)
		s.wantUntil(string(run.Status), e, run.RunAt)
		if (e.Failure.Code != "") != (run.Status == runlane.StatusRetrying) {
			t.Errorf("%s: failure is %+v", run.Status, e.Failure)
		}
	}
}

func explainPublish(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-publish", nil, succeed)
	s := newScene(t, h, handler)
	pending := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.explains("pending", s.rt, pending.ID, core.WaitPublish)

	at := runlane.UTCMillis(s.clock.Now())
	rows, err := s.storage.ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
		Environment: s.rt.Environment(),
		IDs:         s.storage.outboxIDs(),
		At:          at,
		ClaimUntil:  at.Add(30 * time.Second),
		Limit:       10,
	})
	s.must(err)
	if len(rows) != 1 {
		t.Fatalf("claimed %d rows", len(rows))
	}
	s.wantUntil("claimed", s.explains("claimed", s.rt, pending.ID, core.WaitPublish), at.Add(30*time.Second))
	s.clock.Advance(time.Minute)
	s.explains("claimed by a process that died", s.rt, pending.ID, core.WaitPublish)

	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	failed := s.trigger(task.With(jobPayload{}), nil)
	e := s.explains("refused", s.rt, failed.ID, core.WaitPublish)
	s.wantUntil("refused", e, runlane.UTCMillis(s.clock.Now()).Add(time.Second))
	if e.Failure.Code != runlane.ErrTransportPublishFailed || e.Failure.Message != "scripted" {
		t.Errorf("failure is %+v", e.Failure)
	}
	s.clock.Advance(time.Minute)
	s.explains("refused and due again", s.rt, failed.ID, core.WaitPublish)
}

func explainWakeup(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-wakeup", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	begin := s.clock.Now()
	s.wantUntil("handed over once", s.explains("handed over", s.rt, run.ID, core.WaitWakeup), begin.Add(10*time.Minute))
	for _, c := range []struct{ at, next time.Duration }{ // 10 minutes after the first, then 20, then 40
		{10 * time.Minute, 30 * time.Minute},
		{30 * time.Minute, 70 * time.Minute},
		{70 * time.Minute, 150 * time.Minute},
	} {
		s.clock.Advance(c.at - s.clock.Now().Sub(begin))
		s.tick()
		s.tickLate()
		s.wantUntil("redelivered", s.explains("redelivered", s.rt, run.ID, core.WaitWakeup), begin.Add(c.next))
	}
	s.wantHistory(run.ID, "created delivery_requested delivery_requested delivery_requested delivery_requested")

	due := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Minute})
	s.clock.Advance(2 * time.Minute)
	s.tick() // publishes its row and appends nothing
	s.wantStatus(s.get(due.ID), runlane.StatusScheduled)
	s.explains("scheduled and handed over", s.rt, due.ID, core.WaitWakeup)
}

func explainLease(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-lease", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	lease := s.get(run.ID).Lease
	e := s.explains("running", s.rt, run.ID, core.WaitLease)
	s.wantUntil("running", e, lease.ExpiresAt)
	if e.Owner.WorkerID != "dead" || !e.Owner.ExpiresAt.Equal(lease.ExpiresAt) {
		t.Errorf("the owner is %+v", e.Owner)
	}
}

func explainCancellation(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-cancel", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	asked, err := s.rt.Runs().Cancel(t.Context(), run.ID, nil)
	s.must(err)
	s.wantUntil("asked", s.explains("asked", s.rt, run.ID, core.WaitCancellation), asked.Lease.ExpiresAt)
	s.clock.Advance(time.Minute)
	s.explains("asked, and its worker is gone", s.rt, run.ID, core.WaitTick)
	s.tick()
	s.explains("finalized", s.rt, run.ID, core.WaitNone)
}

func explainTick(t *testing.T, h Harness) {
	task, handler := job(
		"scenario.explain-tick",
		&runlane.TaskOptions[jobPayload]{Retry: runlane.Retry{MaxAttempts: 2}},
		func(context.Context, *runlane.Attempt) error {
			return runlane.RetryAfter(time.Minute, errors.New("once"))
		},
	)
	s := newScene(t, h, handler)
	dead := s.trigger(task.With(jobPayload{}), nil)
	retrying := s.execute(s.trigger(task.With(jobPayload{}), nil))
	for n := range runlane.DefaultMaxAbandoned {
		s.die(dead.ID)
		s.clock.Advance(time.Minute)
		e := s.explains("abandoned", s.rt, dead.ID, core.WaitTick)
		if last := n+1 == runlane.DefaultMaxAbandoned; strings.Contains(
			e.Next,
			string(runlane.ErrLeaseExpired),
		) != last {
			t.Errorf("after %d abandoned attempts: %s", n+1, e.Next)
		}
	}
	s.explains("due", s.rt, retrying.ID, core.WaitTick)
	s.tick()
	s.explains("failed", s.rt, dead.ID, core.WaitNone)
}

func explainOperator(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-dead", nil, succeed)
	s := newScene(t, h, handler)
	run := s.giveUp(task, nil)
	if e := s.explains("given up", s.rt, run.ID, core.WaitOperator); e.Failure.Message != "scripted" {
		t.Errorf("failure is %+v", e.Failure)
	}
	s.must(s.rt.DeadLetters().Requeue(t.Context(), run.ID, nil))
	if e, err := s.rt.Runs().Explain(t.Context(), run.ID); err != nil || e.Wait != core.WaitWakeup {
		t.Errorf("requeued: %+v, %v", e, err)
	}
}

// explained is a task in a queue with two slots for each concurrency key.
func explained(id runlane.TaskID) (*runlane.Task[jobPayload], runlane.Handler) {
	return job(id, &runlane.TaskOptions[jobPayload]{Queue: runlane.Queue{Name: "explained", Concurrency: 2}}, succeed)
}

func explainSlot(t *testing.T, h Harness) {
	task, handler := explained("scenario.explain-slot")
	s := newScene(t, h, handler)
	var holders []runlane.RunID
	for range 2 {
		holders = append(holders, s.trigger(task.With(jobPayload{}), nil).ID)
	}
	s.die(holders[0])
	waiting := s.trigger(task.With(jobPayload{}), nil)
	e := s.explains("full", s.rt, waiting.ID, core.WaitSlot)
	if !slices.Equal(sorted(e.Holders), sorted(holders)) {
		t.Errorf("holders are %q, want %q", e.Holders, holders)
	}
	s.wantUntil("full", e, s.get(holders[0]).Lease.ExpiresAt) // it ends before the reservation of the other
	later := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.wantUntil("delayed", s.explains("delayed", s.rt, later.ID, core.WaitTime), later.RunAt)
	other := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{ConcurrencyKey: "another"})
	s.explains("of another key", s.rt, other.ID, core.WaitReservation)

	s.clock.Advance(3 * time.Minute) // the reservation is over; the dead worker's slot is not
	s.explains("a slot is free", s.rt, waiting.ID, core.WaitTick)
	s.explains("its own reservation is over", s.rt, holders[1], core.WaitTick)
}

func explainReservation(t *testing.T, h Harness) {
	task, handler := explained("scenario.explain-reserved")
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.wantUntil("reserved", s.explains("reserved", s.rt, run.ID, core.WaitReservation), s.get(run.ID).DispatchExpiresAt)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	unpublished := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{ConcurrencyKey: "another"})
	if e := s.explains(
		"reserved and refused",
		s.rt,
		unpublished.ID,
		core.WaitPublish,
	); e.Failure.Message != "scripted" {
		t.Errorf("failure is %+v", e.Failure)
	}
}

func explainQueue(t *testing.T, h Harness) {
	task, handler := explained("scenario.explain-queue")
	plain, plainHandler := job("scenario.explain-default", nil, succeed)
	s := newScene(t, h, handler, plainHandler)
	var last *runlane.Run
	for range 3 {
		last = s.trigger(task.With(jobPayload{}), nil)
	}
	s.explains("known", s.rt, last.ID, core.WaitSlot)
	stranger := s.program()
	if e := s.explains(
		"unknown",
		s.caller(stranger),
		last.ID,
		core.WaitQueue,
	); !strings.Contains(e.Next, `"explained"`) {
		t.Errorf("the queue is not named: %s", e.Next)
	}
	dead := s.trigger(plain.With(jobPayload{}), nil)
	s.die(dead.ID)
	s.clock.Advance(time.Minute)
	s.explains("the default queue needs no declaration", s.caller(stranger), dead.ID, core.WaitTick)
}

func explainAbsent(t *testing.T, h Harness) {
	_, handler := job("scenario.explain-absent", nil, succeed)
	s := newScene(t, h, handler)
	s.wantCode(errorOf(s.rt.Runs().Explain(t.Context(), "run_absent")), runlane.ErrRunNotFound)
	s.wantCode(errorOf(s.rt.Runs().Explain(t.Context(), "")), runlane.ErrValidationFailed)
}

// explainUnhandled has a run whose task only another program has, which stores its tasks with its first tick.
func explainUnhandled(t *testing.T, h Harness) {
	_, handler := job("scenario.explain-own", nil, succeed)
	other, otherHandler := job("scenario.explain-others", nil, succeed)
	s := newScene(t, h, handler)
	if !s.rt.Lane().Storage.Capabilities().KeepsTasks {
		return
	}
	run := s.trigger(other.With(jobPayload{}), nil)
	says := func() string {
		e, err := s.rt.Runs().Explain(t.Context(), run.ID)
		s.must(err)
		return e.Next
	}
	const unknown = `No handler for its task "scenario.explain-others" is known`
	if got := says(); !strings.Contains(got, unknown) {
		t.Errorf("no program has the task: %s", got)
	}
	second := s.program(otherHandler)
	s.until("another program has the task", func() bool {
		_, err := second.Tick(t.Context(), &core.TickOptions{Deadline: s.clock.Now().Add(time.Minute)})
		return err == nil && !strings.Contains(says(), "No handler")
	})
	s.clock.Advance(72 * time.Hour)
	if got := says(); !strings.Contains(got, unknown) {
		t.Errorf("the other program is gone: %s", got)
	}
}

// program opens another program of the same environment, which lives as long as the scene.
func (s *scene) program(handlers ...runlane.Handler) *core.Runtime {
	s.Helper()
	l, err := lane.New(s.lent(), NewScriptedTransport(), nil)
	s.must(err)
	rt, err := core.Open(s.Context(), l, &core.Options{
		Environment: s.rt.Environment(),
		World:       s.options.World,
		Logger:      discard(),
		Handlers:    handlers,
	})
	s.must(err)
	s.Cleanup(func() { s.must(rt.Close(context.WithoutCancel(s.Context()))) })
	return rt
}

// explainElsewhere has a run whose trigger named a queue that is bound and that is no task's.
func explainElsewhere(t *testing.T, h Harness) {
	task, handler := job("scenario.explain-elsewhere", nil, succeed)
	s := newScene(t, h, handler)
	if !s.rt.Lane().Storage.Capabilities().KeepsTasks {
		return // what other programs serve is not known
	}
	queue := runlane.Queue{Name: "elsewhere"}
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Queue: queue})
	own := s.trigger(task.With(jobPayload{}), nil)
	says := func(id runlane.RunID) bool {
		e, err := s.rt.Runs().Explain(t.Context(), id)
		s.must(err)
		return strings.Contains(e.Next, `No known task belongs to its queue "elsewhere"`)
	}
	if !says(run.ID) || says(own.ID) {
		t.Errorf("the explanations of the run elsewhere and of the other say so: %t, %t", says(run.ID), says(own.ID))
	}
	_, otherHandler := job("scenario.explain-inhabitant", &runlane.TaskOptions[jobPayload]{Queue: queue}, succeed)
	second := s.program(otherHandler)
	s.until("another program has a task of the queue", func() bool {
		_, err := second.Tick(t.Context(), &core.TickOptions{Deadline: s.clock.Now().Add(time.Minute)})
		return err == nil && !says(run.ID)
	})
}
