package scenarios

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func orderedScenarios() []scenario {
	return []scenario{
		{"the wakeup of a run that is owned keeps its place", nil, orderedLeased, false},
		{"the wakeup of a run that is asked to stop keeps its place until it has ended", nil, orderedAsked, false},
		{"a wakeup that loses its claim again and again keeps its place", nil, orderedClaimLost, false},
		{"the wakeup of an attempt that lost its lease keeps its place", nil, orderedLostLease, false},
		{"the wakeup of an attempt that a shutdown ended keeps its place", nil, orderedShutdown, false},
		{"a shutdown keeps the place of its run although its clock is ahead", nil, orderedShutdownSkew, false},
		{"the wakeup of an attempt that ignores a shutdown keeps its place", nil, orderedUnresponsive, true},
		{"a retry gives its place up and comes back in its group", nil, orderedRetry, false},
		{"a handler's own release gives its place up, whatever its reason says", nil, orderedReleases, false},
		{"nothing takes runs of an ordered queue from the storage", nil, orderedPolled, false},
	}
}

// newOrderedScene is a scene whose default queue is ordered.
func newOrderedScene(t *testing.T, h Harness, handlers ...runlane.Handler) *scene {
	t.Helper()
	return openScene(t, h, core.Options{Handlers: handlers}, func(s *scene) {
		s.transport.Order(runlane.DefaultQueue.Name)
	})
}

// keepsPlace delivers the run and expects that its wakeup is handed back because another worker may execute it.
func (s *scene) keepsPlace(run *runlane.Run) {
	s.Helper()
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	if e := s.wantCode(err, runlane.ErrStorageConflict); e.Conflict != runlane.ConflictLeaseOwnership ||
		!errors.Is(err, core.ErrOwned) || !e.Retryable {
		s.Fatalf("error is %+v", e)
	}
}

func orderedLeased(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", nil, succeed)
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	before := len(s.history(run.ID))
	s.clock.Advance(time.Minute - time.Millisecond)
	s.keepsPlace(run)
	if after := len(s.history(run.ID)); after != before {
		t.Fatalf("%d events were written", after-before)
	}
	elsewhere := *run
	elsewhere.Queue = "other"
	s.ignored(&elsewhere, core.IgnoredWrongQueue)
	s.clock.Advance(time.Millisecond) // over at its very millisecond
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	s.ignored(run, core.IgnoredTerminal)
}

func orderedAsked(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", nil, succeed)
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.die(run.ID)
	s.change(run.ID, &runlane.RunCancellationRequested{Reason: "enough"})
	s.keepsPlace(run)
	s.clock.Advance(time.Minute)
	s.keepsPlace(run) // its owner may go on, and extend the lease that is over
	s.until("a tick ends it", func() bool {
		s.tick()
		return s.get(run.ID).Status == runlane.StatusCancelled
	})
	s.ignored(run, core.IgnoredTerminal)
}

func orderedClaimLost(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", nil, succeed)
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.storage.script(func() { s.storage.onClaim = neverAcquired })
	s.keepsPlace(run)
}

func orderedLostLease(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.ordered", nil, func(_ context.Context, a *runlane.Attempt) error {
		s.clock.Advance(time.Minute)
		s.die(a.Run.ID) // another worker takes it over
		return nil
	})
	s = newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.keepsPlace(run)
	s.wantStatus(s.get(run.ID), runlane.StatusRunning)
}

func orderedShutdown(t *testing.T, h Harness) {
	s, run := shutDown(t, h)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func orderedShutdownSkew(t *testing.T, h Harness) {
	s, run := shutDown(t, h)
	s.clock.Advance(-5 * time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

// shutDown is a run whose attempt was ended by a shutdown.
func shutDown(t *testing.T, h Harness) (*scene, *runlane.Run) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	task, handler := job("scenario.ordered", nil, func(ctx context.Context, a *runlane.Attempt) error {
		if a.Number > 1 {
			return nil
		}
		stop()
		<-ctx.Done()
		return ctx.Err()
	})
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.ExecuteDelivery(ctx, s.wakeup(run), nil)
	s.wantCode(err, runlane.ErrOperationCancelled)
	s.wantStatus(s.get(run.ID), runlane.StatusReleased)
	if sent := s.transport.TakeDelayed(); len(sent) > 0 {
		t.Fatalf("sent %+v, which is in no group", sent)
	}
	return s, run
}

func orderedUnresponsive(t *testing.T, h Harness) {
	ctx, stop := context.WithCancel(t.Context())
	stubborn := make(chan struct{})
	returns := sync.OnceFunc(func() { close(stubborn) })
	defer returns()
	task, handler := job("scenario.ordered-deaf", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			stop()
			<-stubborn
		}
		return nil
	})
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.ExecuteDelivery(ctx, s.wakeup(run), nil)
	s.wantCode(err, runlane.ErrOperationCancelled)
	released := s.get(run.ID)
	s.wantStatus(released, runlane.StatusReleased)
	if released.Abandoned(s.now()) != 0 {
		t.Errorf("the stop counts as a death: %+v", released.Counters)
	}
	s.keepsPlace(run) // its handler may still work
	returns()
	s.clock.Advance(released.RunAt.Sub(s.now()))
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
	if sent := s.transport.TakeDelayed(); len(sent) > 0 {
		t.Errorf("sent %+v, which is in no group", sent)
	}
}

func orderedReleases(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", nil, func(context.Context, *runlane.Attempt) error {
		return runlane.Release(24*time.Hour, "shutdown")
	})
	s := newOrderedScene(t, h, handler)
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusReleased)
	s.ignored(run, core.IgnoredNotDue) // the answer to the acknowledgement was lost: it comes again
}

func orderedRetry(t *testing.T, h Harness) {
	task, handler := job("scenario.ordered", &runlane.TaskOptions[jobPayload]{
		ConcurrencyKey: func(jobPayload) string { return "ada" },
		Retry:          runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(30 * time.Second), NoJitter: true},
	}, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number == 1 {
			return runlane.ErrTaskFailed
		}
		return nil
	})
	s := newOrderedScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.transport.TakePublished()
	s.wantStatus(s.execute(run), runlane.StatusRetrying) // acknowledged: those behind it go on
	s.ignored(run, core.IgnoredNotDue)                   // so is one that comes meanwhile
	s.clock.Advance(30 * time.Second)
	s.until("it is asked for when it is due", func() bool {
		s.tick()
		sent := s.transport.TakePublished()
		return len(sent) > 0 && sent[0].RunID == run.ID && sent[0].GroupKey == "ada"
	})
	if sent := s.transport.TakeDelayed(); len(sent) > 0 {
		t.Fatalf("sent %+v, which is in no group", sent)
	}
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func orderedPolled(t *testing.T, h Harness) {
	other := runlane.Queue{Name: "unordered"}
	task, handler := job("scenario.ordered", nil, succeed)
	free, freed := job("scenario.unordered", &runlane.TaskOptions[jobPayload]{Queue: other}, succeed)
	s := newOrderedScene(t, h, handler, freed)
	run := s.trigger(task.With(jobPayload{}), nil)
	next := s.trigger(free.With(jobPayload{}), nil)
	_, now := s.rt.RunNow(t.Context(), task.With(jobPayload{}), nil)
	_, polled := s.rt.ExecuteNext(t.Context(), nil)
	for what, err := range map[string]error{
		"a drain":     s.rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true}),
		"a poll":      s.rt.Work(t.Context(), &core.WorkOptions{NoTick: true}), // this transport has no receiver
		"RunNow":      now,
		"ExecuteNext": polled,
	} {
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !errors.Is(err, core.ErrOrdered) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	queues := []runlane.QueueName{other.Name}
	s.until("another queue is drained", func() bool {
		s.must(s.rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true, Queues: queues}))
		return s.get(next.ID).Status == runlane.StatusSucceeded
	})
	s.until("nothing is left there", func() bool {
		got, err := s.rt.ExecuteNext(t.Context(), &core.DeliveryOptions{Queues: queues})
		s.must(err)
		return got.Run == nil
	})
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
}
