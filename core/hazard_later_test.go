package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

func stored(t *testing.T, storage lane.Storage, id runlane.RunID) *runlane.Run {
	t.Helper()
	run, err := storage.GetRun(t.Context(), lane.RunKey{RunID: id})
	if err != nil {
		t.Fatalf("run %s is lost: %v", id, err)
	}
	return run
}

// The operator's request comes between the worker's last read and its outcome, which is refused for its sequence. The lease is still
// the worker's, so its work counts.
func TestHazard19_RequestJustBeforeTheOutcome_LosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, factory := memlane.NewStorage(nil), lanetest.NewFactory("")
		task := runlane.NewTask[payload]("nearly done", nil)
		rt := open(t, func(lane.Storage) lane.Storage { return storage }, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
			run := stored(t, storage, a.Run.ID)
			_, err := storage.AppendRunEvents(ctx, factory.Append(t, run, time.Now(), &runlane.RunCancellationRequested{}))
			return err
		}))
		run := trigger(t, rt, task.With(payload{}))
		result, err := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{RunID: run.ID}}, nil)
		if err != nil || result.Ignored != "" || result.Run.Status != runlane.StatusSucceeded {
			t.Fatalf("result is %+v, %v", result, err)
		}
		if got := stored(t, storage, run.ID); got.Status != runlane.StatusSucceeded || got.EventSequence != run.EventSequence+4 {
			t.Errorf("run is %+v", got)
		}
	})
}

// The worker was away for longer than its lease, and another has claimed the run. To the late one that looks the same at first, a
// refused sequence; the token tells that it writes nothing.
func TestHazard19_LateWorkerAfterATakeover_WritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, factory := memlane.NewStorage(nil), lanetest.NewFactory("")
		task := runlane.NewTask[payload]("late", nil)
		var second *runlane.Run
		rt := open(t, func(lane.Storage) lane.Storage { return storage }, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
			run := stored(t, storage, a.Run.ID)
			at := run.Lease.ExpiresAt // by the other's clock
			got, err := storage.ClaimRunLease(ctx, factory.Claim(t, run, at, at.Add(time.Minute), "token of another"))
			if err != nil || got.Outcome != lane.Acquired {
				t.Fatal(got, err)
			}
			second = got.Commit.Run
			return nil
		}))
		run := trigger(t, rt, task.With(payload{}))
		result, err := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{RunID: run.ID}}, nil)
		if err != nil || result.Ignored != core.IgnoredAbandoned {
			t.Errorf("result is %+v, %v", result, err)
		}
		got := stored(t, storage, run.ID)
		if got.EventSequence != second.EventSequence || got.Status != runlane.StatusRunning || got.Lease.Token != second.Lease.Token {
			t.Errorf("run is %+v, want it as the other made it: %+v", got, second)
		}
	})
}

// mortal is a process that dies right behind its first commit: nothing that it does afterwards arrives anywhere.
type mortal struct {
	lane.Storage

	mu   sync.Mutex
	dead bool
}

func (s *mortal) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

var errDead = &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the process is dead"}

func (s *mortal) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.Storage.AppendRunEvents(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	return commit, err
}

func (s *mortal) MarkOutboxMessagesFailed(context.Context, *lane.MarkFailedCommand) error {
	return errDead
}

func (s *mortal) MarkOutboxMessagesPublished(context.Context, *lane.MarkPublishedCommand) error {
	return errDead
}

// mute is that process's way to the queue.
type mute struct {
	lane.Transport

	process *mortal
}

func (m mute) Unwrap() lane.Transport { return m.Transport }

func (m mute) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if m.process.died() {
		return nil, errDead
	}
	return m.Transport.PublishWakeups(ctx, c)
}

// A trigger commits, its row claimed from the start by the triggering process, and that process dies before it sends. No relay ever sees that
// row; the tick publishes it when its patience of a minute is over.
func TestHazard23_DeadEagerPublisher_IsFoundByTheTickAfterItsPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, transport := memlane.NewStorage(nil), memlane.NewTransport(nil)
		dying := &mortal{Storage: storage}
		task := runlane.NewTask[payload]("any", nil)
		run := trigger(t, openOn(t, dying, mute{transport, dying}), task.With(payload{}))
		began := time.Now()
		rt := openOn(t, storage, transport)
		time.Sleep(time.Second) // the ticks do not keep time with the trigger
		for {
			result, err := rt.Tick(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if result.Flushed.Done == 1 {
				break
			}
			if time.Since(began) > 3*time.Minute {
				t.Fatalf("the wakeup of %+v was never published", stored(t, storage, run.ID))
			}
			time.Sleep(time.Minute)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("published after %s, want patience and at most the distance of two ticks", took)
		}
		if visible, _, err := transport.Depth(t.Context(), "default"); err != nil || visible != 1 {
			t.Errorf("%d wakeups, %v", visible, err)
		}
	})
}

// births notes how the rows of deliveries begin.
type births struct {
	lane.Storage

	mu      sync.Mutex
	initial []lane.InitialOutbox
}

func (s *births) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	s.mu.Lock()
	s.initial = append(s.initial, c.Outbox)
	s.mu.Unlock()
	return s.Storage.AppendRunEvents(ctx, c)
}

// The tick publishes what it asks for, so its rows are claimed from the start: a relay beside it would otherwise publish each one too.
func TestHazard23_RowsOfATick_AreClaimedByIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := &births{Storage: memlane.NewStorage(nil)}
		rt := open(t, func(lane.Storage) lane.Storage { return storage })
		run := trigger(t, rt, runlane.NewTask[payload]("any", nil).With(payload{}))
		now := time.Now()
		if got, err := storage.ClaimRunLease(t.Context(), lanetest.NewFactory("").Claim(t, stored(t, storage, run.ID), now, now.Add(time.Minute), "token")); err != nil ||
			got.Outcome != lane.Acquired {
			t.Fatal(got, err)
		}
		storage.initial = nil
		time.Sleep(2 * time.Minute)
		if result, err := rt.Tick(t.Context(), nil); err != nil || result.Delivered.Done != 1 {
			t.Fatal(result, err)
		}
		if len(storage.initial) != 1 || !storage.initial[0].ClaimUntil.After(time.Now()) {
			t.Errorf("the tick's rows began as %+v", storage.initial)
		}
	})
}
