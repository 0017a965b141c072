package dynamostore

import (
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// flow is the command that starts a flow.
func (w *world) flow(id runlane.FlowID) *lane.FlowCommand {
	return &lane.FlowCommand{Environment: "test", Flow: lane.FlowRecord{
		ID: id, CreatedAt: w.now, TendAt: w.now.Add(time.Hour), Plan: []byte(`{"nodes":[{"name":"a","task":"bench.noop"}]}`),
	}}
}

// startFlow puts the record of a flow.
func (w *world) startFlow(id runlane.FlowID) *lane.FlowRecord {
	w.Helper()
	f, err := w.store.PutFlow(w.Context(), w.flow(id))
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// changed writes the record of a flow again, without its plan.
func (w *world) changed(f *lane.FlowRecord, by func(f *lane.FlowRecord)) *lane.FlowRecord {
	w.Helper()
	next := *f
	next.Plan = nil
	by(&next)
	put, err := w.store.PutFlow(w.step(), &lane.FlowCommand{Environment: "test", Flow: next})
	if err != nil {
		w.Fatal(err)
	}
	return put
}

func made(f *lane.FlowRecord) { f.TendAt = time.Time{} }

func addFlowCases(cases map[string]budgetCase) {
	cases["a flow started"] = budgetCase{nil, func(w *world) *world { w.startFlow("flow"); return w }, nil}
	cases["every run of a flow made"] = budgetCase{
		func(w *world) *world { w.started = w.startFlow("flow"); return w },
		func(w *world) *world { w.changed(w.started, made); return w }, nil,
	}
	cases["a flow finished"] = budgetCase{
		func(w *world) *world { w.started = w.changed(w.startFlow("flow"), made); return w },
		func(w *world) *world {
			w.changed(w.started, func(f *lane.FlowRecord) { f.FinishedAt, f.Status = w.now, runlane.FlowCompleted })
			return w
		}, nil,
	}
}

// laterTick is a tick of a runtime that has ticked before.
func laterTick(handlers ...runlane.Handler) budgetCase {
	var rt *core.Runtime
	tick := func(w *world) *world {
		w.Helper()
		if result, err := rt.Tick(w.Context(), nil); err != nil || result.More {
			w.Fatal(result, err)
		}
		return w
	}
	return budgetCase{func(w *world) *world {
		w.Helper()
		l, err := lane.New(w.store, memlane.NewTransport(nil), &lane.Options{Environment: "test"})
		if err != nil {
			w.Fatal(err)
		}
		if rt, err = core.Open(w.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler), Handlers: handlers}); err != nil {
			w.Fatal(err)
		}
		return tick(w)
	}, tick, nil}
}
