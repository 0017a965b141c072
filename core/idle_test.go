package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// idleWorker works for ten virtual minutes with nothing to do and returns how many calls the storage and the transport of the embedded
// lane got: all of their methods but the life cycle, counted by plans that let every call through. Receiving is none: it is one call
// that lasts.
func idleWorker(t *testing.T, options *core.WorkOptions) (storage, transport int) {
	t.Helper()
	every := lanetest.FaultRule{Kind: lanetest.FaultDelay, Rate: 1}
	stored, sent := lanetest.NewFaultPlan(t, 1, every), lanetest.NewFaultPlan(t, 1, every)
	l := newLane(t, lanetest.FaultyStorage(memlane.NewStorage(nil), stored), lanetest.FaultyTransport(memlane.NewTransport(nil), sent))
	idle := runlane.NewTask("idle", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "idle", Concurrency: 3}})
	rt := openQuiet(t, l, core.Options{}, idle.Handle(noop))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	if err := errors.Join(rt.Work(ctx, options), rt.Close(context.WithoutCancel(ctx))); err != nil {
		t.Fatal(err)
	}
	return stored.Struck(lanetest.FaultDelay), sent.Struck(lanetest.FaultDelay)
}

// Between its ticks an idle worker sends no request, and its ticks, which stay in this process, are a few calls a minute.
func TestWork_Idle_OnTheEmbeddedLaneAsksForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if storage, transport := idleWorker(t, &core.WorkOptions{NoTick: true}); storage != 0 || transport != 0 {
			t.Errorf("without ticks: %d calls of the storage and %d of the transport in ten minutes", storage, transport)
		}
		storage, transport := idleWorker(t, nil)
		if storage == 0 || storage > 14*10 || transport != 0 { // a scan for each stage
			t.Errorf("with ticks: %d calls of the storage and %d of the transport in ten minutes", storage, transport)
		}
	})
}
