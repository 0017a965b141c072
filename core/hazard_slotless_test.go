package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// dieWith claims a run for so long, for a worker that never comes back.
func dieWith(t *testing.T, storage lane.Storage, id runlane.RunID, queue runlane.Queue, lease time.Duration) {
	t.Helper()
	run, err := storage.GetRun(t.Context(), lane.RunKey{Environment: runlane.DefaultEnvironment, RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	now := runlane.UTCMillis(time.Now())
	header := runlane.Event{RunID: id, Environment: run.Environment, OccurredAt: now, Actor: runlane.SystemActor}
	claimed, started := header, header
	claimed.Body = &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "lease_" + string(id), WorkerID: "w", ExpiresAt: now.Add(lease)}}
	started.Body = &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	c := &lane.ClaimCommand{At: now, ByWakeup: true, Slot: queue.Bounded(), Transition: lane.Transition{
		ExpectedSequence: run.EventSequence, Events: []runlane.Event{claimed, started}, Queue: queue,
	}}
	if c.Projected, err = core.ProjectRunEvents(run, run.EventSequence, c.Events...); err != nil {
		t.Fatal(err)
	}
	if got, err := storage.ClaimRunLease(t.Context(), c); err != nil || got.Outcome != lane.Acquired {
		t.Fatal(got, err)
	}
}

// A worker dies with a run that started when its queue had no limit; meanwhile the queue got one, and is full. The run waits for a slot
// like every other, and does not stand in the way of other queues.
func TestHazard_ExpiredRunWithoutASlot_WaitsForOneAndStarvesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := memlane.NewStorage(nil)
		full, other := runlane.Queue{Name: "full", Concurrency: 1}, runlane.Queue{Name: "other", Concurrency: 1}
		openWith := func(queues ...runlane.Queue) *core.Runtime {
			l := newLane(t, storage, memlane.NewTransport(nil))
			rt := openQuiet(t, l, core.Options{Queues: queues})
			return rt
		}
		enter := func(rt *core.Runtime, queue runlane.Queue) runlane.RunID {
			task := runlane.NewTask[payload]("any", nil)
			got, err := rt.Trigger(t.Context(), task.With(payload{}), &runlane.TriggerOptions{Queue: queue})
			if err != nil {
				t.Fatal(err)
			}
			return got.Run.ID
		}
		unlimited := runlane.Queue{Name: "full"}
		lost := enter(openWith(unlimited), unlimited)
		dieWith(t, storage, lost, unlimited, time.Minute)
		rt := openWith(full, other)
		dieWith(t, storage, enter(rt, full), full, 24*time.Hour)
		waits := enter(rt, other) // its wakeup is lost

		time.Sleep(10 * time.Minute)
		before := time.Now()
		for range 5 {
			if _, err := rt.Tick(t.Context(), &core.TickOptions{Limit: 1}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		run, err := storage.GetRun(t.Context(), lane.RunKey{Environment: runlane.DefaultEnvironment, RunID: waits})
		if err != nil {
			t.Fatal(err)
		}
		if !run.DispatchExpiresAt.After(before) {
			t.Error("a run of another queue got no slot in five ticks, although there is one")
		}
		if run, err = storage.GetRun(t.Context(), lane.RunKey{Environment: runlane.DefaultEnvironment, RunID: lost}); err != nil {
			t.Fatal(err)
		}
		if run.Status != runlane.StatusQueued {
			t.Errorf("the run whose worker died is %s, and no process recovers it", run.Status)
		}
	})
}
