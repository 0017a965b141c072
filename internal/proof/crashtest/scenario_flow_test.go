package crashtest

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

const flowID runlane.FlowID = "flow"

// flowOf is a flow of four: c goes after the first two, however they end, and d undoes a.
func flowOf(do string) *runlane.Flow {
	f := runlane.NewFlow(flowID)
	a := f.Add("a", play.With(act{Name: "a", Do: do}), nil)
	b := f.Add("b", play.With(act{Name: "b", Do: do}), nil)
	f.Add("c", play.With(act{Name: "c"}), &runlane.NodeOptions{After: []runlane.Node{a, b}, If: runlane.Always})
	f.Add("d", play.With(act{Name: "d"}), &runlane.NodeOptions{After: []runlane.Node{a}, If: runlane.IfFailed})
	return f
}

func startFlow(ctx context.Context, rt *core.Runtime, do string) error {
	_, err := rt.StartFlow(ctx, flowOf(do), nil)
	return err
}

// nodes wants the nodes of the flow to have ended so, a letter each: s, f, c.
func (a *account) nodes(want string) {
	state, err := a.w.rt.Flows().Get(a.w.t.Context(), flowID)
	a.w.must(err)
	got := ""
	for _, n := range state.Nodes {
		got += string(n.Status[:min(1, len(n.Status))])
	}
	if got != want || state.FinishedAt.IsZero() {
		a.fault("the nodes are %s, not %s, and the flow finished at %v", got, want, state.FinishedAt)
	}
}

// flowScenarios have a flow that is started, whose nodes end, that is cancelled, retried and pruned; a tick goes on
// with what its process died with.
func flowScenarios() []scenario {
	starting := operating("start a flow", nil, func(ctx context.Context, rt *core.Runtime) error {
		return startFlow(ctx, rt, succeed)
	}, func(a *account) { a.nodes("sssc") })

	ending := delivering("delivery of nodes", play.With(act{Name: "beside"}))
	ending.prepare = func(w *world) { w.must(startFlow(w.t.Context(), w.rt, succeed)) }
	ending.judge = func(a *account) { a.nodes("sssc") }
	ending.atOnce = 3 // a, b and the one beside

	last := ending
	last.name, last.atOnce = "delivery of the last node", 2 // c and the one beside
	last.prepare = func(w *world) {
		ending.prepare(w)
		w.deliverOnce()
	}

	cancelling := operating("cancel a flow", func(w *world) {
		w.must(startFlow(w.t.Context(), w.rt, asks))
		w.deliver()
	}, nil, func(a *account) { a.nodes("ccss") })
	cancelling.act = func(ctx context.Context, c *child) error {
		_, err := c.rt.Flows().Cancel(ctx, flowID, nil)
		return err
	}
	cancelling.repeat = func(w *world) {
		if state, err := w.rt.Flows().Get(w.t.Context(), flowID); err == nil && !state.Cancelled {
			_, err = w.rt.Flows().Cancel(w.t.Context(), flowID, nil)
			w.must(err)
		}
		w.deliver()
	}

	retrying := operating("retry a flow", func(w *world) {
		w.must(startFlow(w.t.Context(), w.rt, refuse))
		w.deliver()
	}, nil, func(a *account) { a.nodes("ffss"); a.count(8) })
	retrying.act = func(ctx context.Context, c *child) error { return retryFlow(ctx, c.rt) }
	retrying.repeat = func(w *world) {
		state, err := w.rt.Flows().Get(w.t.Context(), flowID)
		w.must(err)
		unmade := slices.ContainsFunc(state.Nodes, func(n runlane.NodeState) bool { return n.Status == "" })
		if state.Retries == 0 || unmade {
			w.must(retryFlow(w.t.Context(), w.rt))
		}
		w.deliver()
	}

	pruning := operating("prune a flow", func(w *world) {
		w.must(startFlow(w.t.Context(), w.rt, succeed))
		w.deliver()
		state, err := w.rt.Flows().Get(w.t.Context(), flowID)
		w.must(err)
		for _, n := range state.Nodes {
			w.gone[n.RunID] = true
		}
		w.advance(time.Hour)
	}, func(ctx context.Context, rt *core.Runtime) error {
		_, err := rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute})
		return err
	}, func(a *account) { a.noItems("run:"); a.noItems("flow:") })
	return []scenario{
		starting, ending, last, cancelling, retrying, pruning,
		tending("tick that goes on with a cancellation", asks, func(f *lane.FlowRecord) { f.Closed = 1 }, "ccss"),
		tending("tick that finds a flow that is whole", succeed, func(*lane.FlowRecord) {}, "sssc"),
		unmade(),
	}
}

func retryFlow(ctx context.Context, rt *core.Runtime) error {
	_, err := rt.Flows().Retry(ctx, flowID, nil)
	return err
}

// tending is a tick that has to look at a flow: its process died with a change.
func tending(name, do string, died func(f *lane.FlowRecord), want string) scenario {
	return scenario{
		name: name,
		prepare: func(w *world) {
			w.must(startFlow(w.t.Context(), w.rt, do))
			if do == asks {
				w.deliver()
			}
			f, err := w.storage.GetFlow(w.t.Context(), lane.FlowKey{Environment: w.environment, FlowID: flowID})
			w.must(err)
			died(f)
			f.Plan, f.TendAt = nil, runlane.UTCMillis(w.now())
			w.putFlow(f)
		},
		act:   tickOnce,
		judge: func(a *account) { a.nodes(want) },
	}
}

func (w *world) putFlow(f *lane.FlowRecord) {
	w.t.Helper()
	_, err := w.storage.PutFlow(w.t.Context(), &lane.FlowCommand{Environment: w.environment, Flow: *f})
	w.must(err)
}

// unmade is a tick that cancels a flow of which nothing was made within its hour.
func unmade() scenario {
	return scenario{
		name: "tick that closes a flow",
		prepare: func(w *world) {
			at := runlane.UTCMillis(w.now())
			w.putFlow(&lane.FlowRecord{
				ID: flowID, CreatedAt: at, TendAt: at, Plan: []byte(`{"nodes":[{"name":"a","task":"play","if":"succeeded"}]}`),
			})
		},
		act:   tickOnce,
		judge: func(a *account) { a.nodes("") },
	}
}
