package core_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A backlog of a bounded queue whose waits are over comes first in the order of time, and no stage of a tick has anything to do for it
// but the one that reserves slots. The other queue's run is due last, and found by the first tick.
func TestHazard39_DueRowsOfABoundedQueue_HideNoOtherQueue(t *testing.T) {
	t.Parallel()
	const backlog = 12_000
	full := runlane.NewTask[numbered]("hazard.full", &runlane.TaskOptions[numbered]{Queue: runlane.Queue{Name: "full", Concurrency: 1}})
	other := runlane.NewTask[numbered]("hazard.other", nil)
	handle := func(context.Context, *runlane.Attempt, numbered) error { return nil }
	h := newHazard(t, full.Handle(handle), other.Handle(handle))
	for range backlog {
		_, err := h.rt.Trigger(t.Context(), full.With(numbered{}), &runlane.TriggerOptions{Delay: time.Hour})
		h.must(err)
	}
	got, err := h.rt.Trigger(t.Context(), other.With(numbered{}), &runlane.TriggerOptions{Delay: time.Hour + time.Second})
	h.must(err)
	h.published()
	h.clock.Advance(2 * time.Hour)
	result, err := h.rt.Tick(t.Context(), nil)
	h.must(err)
	if published := h.published(); !slices.Contains(published, got.Run.ID) {
		t.Fatalf("the first tick did not find the other queue's run: %+v", result)
	}
}

// endless has no end of pages that hold nothing, each of which takes a second.
type endless struct{ *memlane.Storage }

func (s endless) ListRunsNeedingCancellationFinalization(ctx context.Context, _ *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	select {
	case <-time.After(time.Second):
		return &runlane.Page[lane.RunRef]{Next: "more"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A stage whose time is over among pages that hold nothing says that there is more, and that it got on: the next tick has fewer of them
// before it, and a function that ticks goes on at once. It has had its share, and the others have theirs.
func TestHazard39_TimeIsOverAmongEmptyPages_IsProgressAndMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := openOn(t, endless{memlane.NewStorage(nil)}, scenarios.NewScriptedTransport())
		began := time.Now()
		result, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: began.Add(80 * time.Second)})
		if err != nil || !result.More || !result.Cancelled.More || result.Cancelled.Passed < 8 {
			t.Errorf("result is %+v, error %v", result, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the stage took %s of 80 s, with two shares of eighteen", took)
		}
	})
}

// refusesSome cannot write to some runs.
type refusesSome struct {
	*memlane.Storage
	refuses func(runlane.RunID) bool
}

func (s refusesSome) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if s.refuses(c.Key().RunID) {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "scripted"}
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// Runs for which a stage fails each time come first. Those behind them get their turn, and the failures are reported.
func TestHazard39_RunsThatFailEachTime_HideNoOther(t *testing.T) {
	t.Parallel()
	const limit = 5
	task := runlane.NewTask[numbered]("hazard.refused", nil)
	h := newHazard(t, task.Handle(func(context.Context, *runlane.Attempt, numbered) error { return nil }))
	bad := map[runlane.RunID]bool{}
	cancelling := func() *runlane.Run {
		run := trigger(t, h.rt, task.With(numbered{}))
		h.dies(run.ID)
		_, err := h.storage.AppendRunEvents(t.Context(), h.factory.Append(h, h.get(run.ID), h.clock.Now(), &runlane.RunCancellationRequested{}))
		h.must(err)
		h.clock.Advance(time.Second)
		return run
	}
	for range 2 * limit {
		bad[cancelling().ID] = true
	}
	good := cancelling()
	h.clock.Advance(time.Hour)
	l, err := lane.New(refusesSome{h.storage, func(id runlane.RunID) bool { return bad[id] }}, scenarios.NewScriptedTransport(), nil)
	h.must(err)
	rt, err := core.Open(t.Context(), l, &core.Options{
		Environment: "hazards", Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: h.clock.Now},
	})
	h.must(err)
	result, err := rt.Tick(t.Context(), &core.TickOptions{Limit: limit})
	if !errors.Is(err, runlane.ErrInternal) || result.Cancelled.Failed != 2*limit || result.Cancelled.Done != 1 {
		t.Errorf("result is %+v, error %v", result.Cancelled, err)
	}
	if run := h.get(good.ID); run.Status != runlane.StatusCancelled {
		t.Errorf("the run behind them is %s", run.Status)
	}
}
