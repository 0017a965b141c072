package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// crowd counts attempts under way.
type crowd struct {
	mu       sync.Mutex
	now, top map[string]int
}

func (c *crowd) enter(kind string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[kind]++
	c.top[kind] = max(c.top[kind], c.now[kind])
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now[kind]--
	}
}

// dieTwice lets two workers die with all runs.
func dieTwice(t *testing.T, storage lane.Storage, ids []runlane.RunID) {
	t.Helper()
	for range 2 {
		for _, id := range ids {
			dieWith(t, storage, id, runlane.DefaultQueue, time.Minute)
		}
		time.Sleep(2 * time.Minute)
	}
}

// A worker is killed with fifty attempts. Most deaths are a deployment or a lost machine, so all go on when the lease ends, not one after
// the other.
func TestSuspect_OneDeath_IsNobodysFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		work := runlane.NewTask[numbered]("hazard.work", nil)
		storage := memlane.NewStorage(nil)
		rt := openOn(t, storage, memlane.NewTransport(nil), work.Handle(func(ctx context.Context, _ *runlane.Attempt, _ numbered) error {
			begun.Add(1)
			<-ctx.Done() // until the shutdown
			return ctx.Err()
		}))
		for range 50 {
			dieWith(t, storage, trigger(t, rt, work.With(numbered{})).ID, runlane.DefaultQueue, runlane.DefaultLease)
		}
		defer startWork(t, rt, &core.WorkOptions{Concurrency: 64, NoTick: true})()
		time.Sleep(runlane.DefaultLease + time.Second)
		if n := begun.Load(); n != 0 {
			t.Errorf("%d runs began before a tick", n)
		}
		if _, err := rt.Tick(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := begun.Load(); n != 50 {
			t.Errorf("%d of 50 runs began again", n)
		}
	})
}

// A worker that lives long executes one suspect at a time, beside ordinary runs, which lose no time: waiting for all others to end would hold
// up a busy worker for as long as its longest attempt.
func TestHazard51_LongLivedWorker_ExecutesOneSuspectAtATime(t *testing.T) {
	t.Parallel()
	for _, drain := range []bool{false, true} {
		t.Run(fmt.Sprint("drain ", drain), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const suspects, ordinary = 4, 6
				c := &crowd{now: map[string]int{}, top: map[string]int{}}
				work := runlane.NewTask[numbered]("hazard.work", nil)
				handler := work.Handle(func(_ context.Context, a *runlane.Attempt, _ numbered) error {
					kind := "ordinary"
					if a.Number > 1 {
						kind = "suspect"
					}
					defer c.enter(kind)()
					time.Sleep(10 * time.Second)
					return nil
				})
				storage := memlane.NewStorage(nil)
				rt := openOn(t, storage, memlane.NewTransport(nil), handler)
				var ids []runlane.RunID
				for range suspects {
					run := trigger(t, rt, work.With(numbered{}))
					ids = append(ids, run.ID)
				}
				dieTwice(t, storage, ids)
				for range ordinary {
					ids = append(ids, trigger(t, rt, work.With(numbered{})).ID)
				}
				stop := startWork(t, rt, &core.WorkOptions{Drain: drain, NoTick: true})
				for _, id := range ids {
					if run, err := rt.Wait(t.Context(), id); err != nil || run.Status != runlane.StatusSucceeded {
						t.Errorf("%s is %v: %v", id, run, err)
					}
				}
				stop()
				if c.top["suspect"] != 1 || c.top["ordinary"] != ordinary {
					t.Errorf("at most %d suspects and %d ordinary runs were executed at once, want 1 and %d", c.top["suspect"], c.top["ordinary"], ordinary)
				}
			})
		})
	}
}

// countedHistory counts reads of histories.
type countedHistory struct {
	*memlane.Storage

	mu    sync.Mutex
	reads int
	down  bool
}

func (c *countedHistory) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	if c.down {
		return nil, errUnheard
	}
	return c.Storage.ListRunEvents(ctx, q)
}

// The run as it is read before each claim tells whether it is a suspect, nearly always: only where it had both, outcomes and abandoned
// attempts, and waits for a worker, the history has to say how it went on.
func TestHazard51_OrdinaryRuns_AreToldFromSuspectsWithoutAnotherRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := runlane.NewTask("hazard.reads", &runlane.TaskOptions[numbered]{
			Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Fixed(time.Second), NoJitter: true},
		})
		handler := task.Handle(func(_ context.Context, a *runlane.Attempt, _ numbered) error {
			if a.Number == 1 || a.Number == 3 {
				return fmt.Errorf("attempt %d", a.Number)
			}
			return nil
		})
		storage := &countedHistory{Storage: memlane.NewStorage(nil)}
		rt := openOn(t, storage, memlane.NewTransport(nil), handler)
		run := trigger(t, rt, task.With(numbered{}))
		deliver := func(suspect bool, reads int) {
			t.Helper()
			before := storage.reads
			_, err := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{RunID: run.ID}, Queue: run.Queue}, &core.DeliveryOptions{Beside: true})
			if (runlane.CodeOf(err) == runlane.ErrLeaseExpired) != suspect {
				t.Errorf("suspect: want %t, error is %v", suspect, err)
			}
			if got := storage.reads - before; got != reads {
				t.Errorf("the history was read %d times, want %d", got, reads)
			}
			time.Sleep(5 * time.Second)
		}
		deliver(false, 0) // attempt 1 fails
		dieWith(t, storage.Storage, run.ID, runlane.DefaultQueue, time.Minute)
		time.Sleep(2 * time.Minute)
		wakeup := lane.Wakeup{RunKey: lane.RunKey{RunID: run.ID}, Queue: run.Queue}
		storage.down = true // nothing is decided by a history that cannot be read
		if result, err := rt.ExecuteDelivery(t.Context(), wakeup, &core.DeliveryOptions{Beside: true}); runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
			t.Errorf("without the history: %+v, %v", result, err)
		}
		storage.down = false
		deliver(true, 1) // one outcome and one abandoned attempt, in this order
		if _, err := rt.ExecuteDelivery(t.Context(), wakeup, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		deliver(false, 0) // it retries: attempt 3 had an outcome
	})
}
