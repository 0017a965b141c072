package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// Timelines in which a runtime like this goes wrong. The number is the timeline's; what they need from a storage is proven by the
// conformance cases of that number.

type numbered struct {
	Number int `json:"number"`
}

// hazard is one process on a storage in memory, with a transport and a clock in the test's hands.
type hazard struct {
	*testing.T
	rt        *core.Runtime
	storage   *memlane.Storage
	transport *scenarios.ScriptedTransport
	clock     *scenarios.Clock
	factory   *lanetest.Factory
}

func newHazard(t *testing.T, handlers ...runlane.Handler) *hazard {
	t.Helper()
	h := &hazard{
		T: t, storage: memlane.NewStorage(nil), clock: scenarios.NewClock(time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)),
		factory: lanetest.NewFactory("hazards"),
	}
	h.open(func() time.Time { return h.clock.Now() }, handlers...)
	return h
}

// open starts a process with a separate clock and transport.
func (h *hazard) open(now func() time.Time, handlers ...runlane.Handler) {
	h.Helper()
	h.transport = scenarios.NewScriptedTransport()
	l, err := lane.New(h.storage, h.transport, nil)
	h.must(err)
	h.rt, err = core.Open(h.Context(), l, &core.Options{
		Environment: "hazards", Handlers: handlers, Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: now},
	})
	h.must(err)
	rt := h.rt
	h.Cleanup(func() { _ = rt.Close(context.Background()) })
}

func (h *hazard) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hazard) key(id runlane.RunID) lane.RunKey {
	return lane.RunKey{Environment: "hazards", RunID: id}
}

func (h *hazard) get(id runlane.RunID) *runlane.Run {
	h.Helper()
	run, err := h.storage.GetRun(h.Context(), h.key(id))
	h.must(err)
	return run
}

func (h *hazard) wakeup(run *runlane.Run) (*core.DeliveryResult, error) {
	return h.rt.ExecuteDelivery(h.Context(), lane.Wakeup{RunKey: h.key(run.ID), Queue: run.Queue, RequestedAt: h.clock.Now()}, nil)
}

// dies claims the run for a worker that is never heard of again. Its lease lasts a minute.
func (h *hazard) dies(id runlane.RunID) {
	h.Helper()
	at := h.clock.Now()
	c := h.factory.Claim(h, h.get(id), at, at.Add(time.Minute), h.factory.NewToken())
	got, err := h.storage.ClaimRunLease(h.Context(), c)
	h.must(err)
	if got.Outcome != lane.Acquired {
		h.Fatalf("claim: %s", got.Outcome)
	}
}

func (h *hazard) published() []runlane.RunID {
	var ids []runlane.RunID
	for _, a := range h.transport.TakePublished() {
		ids = append(ids, a.RunID)
	}
	return ids
}

func (h *hazard) deadLetters() int {
	h.Helper()
	page, err := h.storage.ListDeadLetters(h.Context(), &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: "hazards"}})
	h.must(err)
	return len(page.Items)
}

// With a backlog, asking again would add traffic exactly while the transport is slow; without one, or
// after six hours, the wakeup counts as lost.
func TestHazard05_LostWakeup_IsAskedForAgainUnlessItsQueueIsBehind(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[numbered]("hazard.lost", nil)
	h := newHazard(t, task.Handle(func(context.Context, *runlane.Attempt, numbered) error { return nil }))
	run := trigger(t, h.rt, task.With(numbered{}))
	h.published() // and lost
	tick := func() *core.TickResult {
		t.Helper()
		result, err := h.rt.Tick(t.Context(), nil)
		h.must(err)
		return result
	}
	h.clock.Advance(10*time.Minute - time.Millisecond)
	if result := tick(); result.Redelivered != (core.StageResult{}) {
		t.Fatalf("redelivered early: %+v", result.Redelivered)
	}
	h.transport.SetDepth(101)
	h.clock.Advance(time.Millisecond)
	for range 6 * 60 {
		if result := tick(); result.Redelivered.Done != 0 || result.Redelivered.Skipped != 1 {
			t.Fatalf("redelivered while the queue is behind: %+v", result.Redelivered)
		}
		h.clock.Advance(time.Minute)
	}
	h.clock.Advance(time.Millisecond) // more than six hours late
	if result := tick(); result.Redelivered.Done != 1 || !slices.Equal(h.published(), []runlane.RunID{run.ID}) {
		t.Fatalf("not redelivered after six hours: %+v", result.Redelivered)
	}
	h.transport.SetDepth(100)
	if result := tick(); result.Redelivered.Done != 0 {
		t.Fatal("redelivered twice in a row")
	}
	h.clock.Advance(6 * time.Hour)
	if result := tick(); result.Redelivered.Done != 1 || !slices.Equal(h.published(), []runlane.RunID{run.ID}) {
		t.Fatalf("not redelivered although the queue is not behind: %+v", result.Redelivered)
	}
	if result, err := h.wakeup(run); err != nil || result.Run.Status != runlane.StatusSucceeded {
		t.Fatal(result, err)
	}
}

// A wakeup was lost of a queue that is up to date, while more of another queue are late than a tick looks at.
func TestHazard05_LostWakeup_IsFoundBehindABacklogOfAnotherQueue(t *testing.T) {
	t.Parallel()
	const limit = 3
	task := runlane.NewTask[numbered]("hazard.lost", nil)
	slow := runlane.NewTask[numbered]("hazard.late", &runlane.TaskOptions[numbered]{Queue: runlane.Queue{Name: "slow"}})
	handle := func(context.Context, *runlane.Attempt, numbered) error { return nil }
	h := newHazard(t, task.Handle(handle), slow.Handle(handle))
	h.transport.SetDepth(1000, "slow")
	for range 4 * limit {
		trigger(t, h.rt, slow.With(numbered{}))
	}
	h.clock.Advance(time.Second)
	run := trigger(t, h.rt, task.With(numbered{}))
	h.published() // the first are late, the last is lost
	h.clock.Advance(10 * time.Minute)
	result, err := h.rt.Tick(t.Context(), &core.TickOptions{Limit: limit})
	h.must(err)
	if want := (core.StageResult{Done: 1, Skipped: limit}); result.Redelivered != want || !slices.Equal(h.published(), []runlane.RunID{run.ID}) {
		t.Fatalf("redelivered: %+v, want %+v", result.Redelivered, want)
	}
	h.clock.Advance(6 * time.Hour) // which no backlog excuses
	result, err = h.rt.Tick(t.Context(), &core.TickOptions{Limit: limit})
	h.must(err)
	if want := (core.StageResult{Done: limit, More: true}); result.Redelivered != want {
		t.Fatalf("redelivered after six hours: %+v, want %+v", result.Redelivered, want)
	}
}

// Ten failures at doubling distance take nine minutes. An outage that counted for one would make a
// dead letter of every wakeup that falls into it.
func TestHazard09_OutageOfADay_DeadLettersNothing(t *testing.T) {
	t.Parallel()
	each := func(code runlane.ErrorCode) func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
		return func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
			return slices.Repeat([]lane.PublishOutcome{{Type: lane.PublishFailed, Failure: runlane.NewFailure(code, "no", nil)}}, len(c.Attempts)), nil
		}
	}
	whole := func(err error) func(c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
		return func(*lane.PublishCommand) ([]lane.PublishOutcome, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		answer func(*lane.PublishCommand) ([]lane.PublishOutcome, error)
		dead   int
	}{
		"the service is down":             {whole(&runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "down"}), 0},
		"no access, or no queue":          {whole(&runlane.Error{Code: runlane.ErrTransportPublishFailed, Message: "denied"}), 0},
		"an error of no known kind":       {whole(errors.New("broken")), 0},
		"every message is throttled":      {each(runlane.ErrTransportUnavailable), 0},
		"every message itself is refused": {each(runlane.ErrTransportPublishFailed), 5}, // the rule's other side
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := runlane.NewTask[numbered]("hazard.outage", nil)
			h := newHazard(t, task.Handle(func(context.Context, *runlane.Attempt, numbered) error { return nil }))
			h.transport.OnPublish(c.answer)
			var want []runlane.RunID
			for n := range 5 {
				want = append(want, trigger(t, h.rt, task.With(numbered{n})).ID)
			}
			for range 24 * 60 {
				h.clock.Advance(time.Minute)
				if _, err := h.rt.Tick(t.Context(), nil); err != nil && c.dead == 0 && h.deadLetters() > 0 {
					t.Fatalf("an outage made a dead letter: %v", err)
				}
			}
			if got := h.deadLetters(); got != c.dead {
				t.Fatalf("%d dead letters after a day, want %d", got, c.dead)
			}
			if c.dead > 0 {
				return
			}
			h.transport.OnPublish(nil)
			h.clock.Advance(5*time.Minute + time.Millisecond) // no try is further away
			_, err := h.rt.Tick(t.Context(), nil)
			h.must(err)
			got := h.published()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("published when the outage is over: %v, want %v", got, want)
			}
		})
	}
}

// The bound on abandoned attempts holds before every commit that takes up an expired lease,
// on whichever way the run is found, and counts the attempt whose lease has just ended.
func TestHazard11_BoundOnAbandonedAttempts_HoldsOnEveryWay(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(h *hazard, run *runlane.Run){
		"by the tick": func(h *hazard, _ *runlane.Run) {
			h.clock.Advance(2 * time.Minute) // patience
			_, err := h.rt.Tick(h.Context(), nil)
			h.must(err)
		},
		"by a wakeup that comes again": func(h *hazard, run *runlane.Run) {
			_, err := h.wakeup(run)
			h.must(err)
		},
		"by a worker that polls": func(h *hazard, _ *runlane.Run) {
			h.must(h.rt.Work(h.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
		},
	} {
		for dead := 1; dead <= runlane.DefaultMaxAbandoned+1; dead++ {
			t.Run(fmt.Sprint(name, ", after ", dead), func(t *testing.T) {
				t.Parallel()
				executed := 0
				task := runlane.NewTask[numbered]("hazard.poison", nil)
				h := newHazard(t, task.Handle(func(context.Context, *runlane.Attempt, numbered) error { executed++; return nil }))
				run := trigger(t, h.rt, task.With(numbered{}))
				for range dead {
					h.dies(run.ID)
					h.clock.Advance(time.Minute)
				}
				find(h, run)
				after := h.get(run.ID)
				failed := after.Status == runlane.StatusFailed && after.Failure.Code == runlane.ErrLeaseExpired
				if want := dead >= runlane.DefaultMaxAbandoned; failed != want || want && (executed > 0 || after.Counters.Attempts != dead) {
					t.Errorf("run is %s after %d abandoned attempts and %d executions: %+v", after.Status, dead, executed, after.Counters)
				}
			})
		}
	}
}

// The wakeup of a retry comes to a process whose clock is two seconds behind. Acknowledged as too
// early, it would leave the run to the tick, a minute and a half later.
func TestHazard13_EarlyWakeup_IsSentAgainOrWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const behind, wait = 2 * time.Second, 10 * time.Second
		task := runlane.NewTask("hazard.early", &runlane.TaskOptions[numbered]{
			Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(wait), NoJitter: true},
		})
		handler := task.Handle(func(_ context.Context, a *runlane.Attempt, _ numbered) error {
			if a.Number == 1 {
				return errors.New("broken")
			}
			return nil
		})
		h := newHazard(t)
		h.open(time.Now, handler)
		run := trigger(t, h.rt, task.With(numbered{}))
		if _, err := h.wakeup(run); err != nil {
			t.Fatal(err)
		}
		sent := h.transport.TakeDelayed()
		if len(sent) != 1 || sent[0].Delay < wait {
			t.Fatalf("sent for the retry: %+v, want one wakeup not before it", sent)
		}
		h.must(rest(t.Context(), sent[0].Delay))

		h.open(func() time.Time { return time.Now().Add(-behind) }, handler)
		h.transport.OnSend(func([]lane.DelayedWakeup) ([]lane.PublishOutcome, error) { return nil, runlane.ErrTransportUnavailable })
		if result, err := h.wakeup(run); err == nil {
			t.Fatalf("acknowledged although it could not be sent again: %+v", result)
		}
		h.transport.OnSend(nil)
		result, err := h.wakeup(run)
		if err != nil || result.Ignored != core.IgnoredNotDue {
			t.Fatalf("two seconds early: %+v, %v", result, err)
		}
		sent = h.transport.TakeDelayed()
		if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < behind || sent[0].Delay > behind+time.Second {
			t.Fatalf("sent again: %+v, want what remains", sent)
		}
		// Up to a second is waited for, exactly.
		h.must(rest(t.Context(), behind-time.Second))
		began := time.Now()
		result, err = h.wakeup(run)
		if err != nil || result.Ignored != "" || result.Run.Status != runlane.StatusSucceeded {
			t.Fatalf("a second early: %+v, %v", result, err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %s, want a second", waited)
		}
	})
}
