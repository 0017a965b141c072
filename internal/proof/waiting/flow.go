package waiting

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
	a := f.Add("a", Play.With(Act{Name: "a", Do: do}), nil)
	b := f.Add("b", Play.With(Act{Name: "b", Do: do}), nil)
	f.Add("c", Play.With(Act{Name: "c"}), &runlane.NodeOptions{After: []runlane.Node{a, b}, If: runlane.Always})
	f.Add("d", Play.With(Act{Name: "d"}), &runlane.NodeOptions{After: []runlane.Node{a}, If: runlane.IfFailed})
	return f
}

func startFlow(ctx context.Context, rt *core.Runtime, do string) error {
	_, err := rt.StartFlow(ctx, flowOf(do), nil)
	return err
}

// started is a flow whose nodes have executed as far as they can.
func started(do string) func(w World) {
	return func(w World) {
		w.Must(startFlow(context.Background(), w.Runtime(), do))
		w.Deliver()
	}
}

func flow(w World) *runlane.FlowState {
	state, err := w.Runtime().Flows().Get(context.Background(), flowID)
	w.Must(err)
	return state
}

// nodes wants the nodes of the flow to have ended so, a letter each: s, f, c.
func nodes(want string) func(*End) {
	return func(e *End) {
		state, err := e.Runtime.Flows().Get(context.Background(), flowID)
		if err != nil {
			e.Fault("the flow: %v", err)
			return
		}
		got := ""
		for _, n := range state.Nodes {
			got += string(n.Status[:min(1, len(n.Status))])
		}
		if got != want || state.FinishedAt.IsZero() {
			e.Fault("the nodes are %s, not %s, and the flow finished at %v", got, want, state.FinishedAt)
		}
		if len(e.Runs) < len(want) {
			e.Fault("there are %d runs of %d nodes", len(e.Runs), len(want))
		}
	}
}

// flows are started, their nodes end, they are cancelled, retried and pruned; a tick goes on with what its process died
// with.
func flows() []Scenario {
	ending := delivering("delivery of nodes", Play.With(Act{Name: "beside"}), nodes("sssc"))
	ending.Prepare = func(w World) { w.Must(startFlow(context.Background(), w.Runtime(), "")) }
	ending.AtOnce = 3 // a, b and the one beside

	last := ending
	last.Name, last.AtOnce = "delivery of the last node", 2 // c and the one beside
	last.Prepare = func(w World) {
		ending.Prepare(w)
		w.DeliverOnce()
	}
	return slices.Concat([]Scenario{
		operating("start a flow", nil, func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
			return startFlow(ctx, rt, "")
		}, nodes("sssc")),
		ending, last, cancelling(), retrying(), pruning(),
		tending("tick that goes on with a cancellation", Asks, func(f *lane.FlowRecord) { f.Closed = 1 }, "ccss"),
		tending("tick that finds a flow that is whole", "", func(*lane.FlowRecord) {}, "sssc"),
		unmade(),
	}, answering())
}

func cancelling() Scenario {
	stop := func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
		_, err := rt.Flows().Cancel(ctx, flowID, nil)
		return err
	}
	s := operating("cancel a flow", started(Asks), stop, nodes("ccss"))
	s.Repeat = func(w World) {
		if !flow(w).Cancelled {
			w.Must(stop(context.Background(), w.Runtime(), nil))
		}
		w.Deliver()
	}
	return s
}

func retrying() Scenario {
	retry := func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
		_, err := rt.Flows().Retry(ctx, flowID, nil)
		return err
	}
	s := operating("retry a flow", started(Refuse), retry, func(e *End) {
		nodes("ffss")(e)
		if len(e.Runs) != 8 {
			e.Fault("there are %d runs, not 8", len(e.Runs))
		}
	})
	s.Repeat = func(w World) {
		state := flow(w)
		unmade := slices.ContainsFunc(state.Nodes, func(n runlane.NodeState) bool { return n.Status == "" })
		if state.Retries == 0 || unmade {
			w.Must(retry(context.Background(), w.Runtime(), nil))
		}
		w.Deliver()
	}
	return s
}

// answering has a flow of which one node waits for its answer.
func answering() []Scenario {
	signalNode := func(ctx context.Context, rt *core.Runtime, name string) error {
		return rt.SignalNode(ctx, runlane.Node{Flow: flowID, Name: name}, approved.With(by), once())
	}
	asked := func(do string) func(w World) {
		return func(w World) {
			started(do)(w)
			w.Must(signalNode(context.Background(), w.Runtime(), "b"))
		}
	}
	telling := delivering("delivery that signals a node", Play.With(Act{Name: "beside", Do: Tells}), nodes("sssc"))
	triggered := telling.Prepare
	telling.Prepare = func(w World) {
		asked(Asks)(w)
		triggered(w)
	}
	telling.AtOnce = 3 // b, the one beside, and what they lead to
	return []Scenario{
		telling,
		operating("signal a node", asked(Asks), func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
			return signalNode(ctx, rt, "a")
		}, nodes("sssc")),
		operating("answer a node by its token", func(w World) {
			asked(Mails)(w)
			keepToken(w, flow(w).Nodes[0].RunID)
		}, answer, nodes("sssc")),
	}
}

func pruning() Scenario {
	return operating("prune a flow", func(w World) {
		started("")(w)
		for _, n := range flow(w).Nodes {
			w.Gone(n.RunID)
		}
		w.Advance(time.Hour)
	}, func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
		_, err := rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute})
		return err
	}, func(e *End) {
		_, err := e.Runtime.Flows().Get(context.Background(), flowID)
		if len(e.Runs) > 0 || runlane.CodeOf(err) != runlane.ErrFlowNotFound {
			e.Fault("%d runs are left, and the flow's error is %v", len(e.Runs), err)
		}
	})
}

func tick(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
	_, err := rt.Tick(ctx, nil)
	return err
}

// tending is a tick that has to look at a flow: its process died with a change.
func tending(name, do string, died func(f *lane.FlowRecord), want string) Scenario {
	return Scenario{
		Name: name,
		Prepare: func(w World) {
			rt := w.Runtime()
			w.Must(startFlow(context.Background(), rt, do))
			if do == Asks {
				w.Deliver()
			}
			f, err := rt.Lane().Storage.GetFlow(context.Background(), &lane.FlowRead{
				FlowKey: lane.FlowKey{Environment: rt.Environment(), FlowID: flowID},
			})
			w.Must(err)
			died(f)
			f.Plan, f.TendAt = nil, runlane.UTCMillis(w.Now())
			putFlow(w, f)
		},
		Act:   tick,
		Judge: nodes(want),
	}
}

func putFlow(w World, f *lane.FlowRecord) {
	rt := w.Runtime()
	command := &lane.FlowCommand{Environment: rt.Environment(), Flow: *f}
	_, err := rt.Lane().Storage.PutFlow(context.Background(), command)
	w.Must(err)
}

// unmade is a tick that cancels a flow of which nothing was made within its hour.
func unmade() Scenario {
	return Scenario{
		Name: "tick that closes a flow",
		Prepare: func(w World) {
			at := runlane.UTCMillis(w.Now())
			putFlow(w, &lane.FlowRecord{
				ID:        flowID,
				CreatedAt: at,
				TendAt:    at,
				Plan:      []byte(`{"nodes":[{"name":"a","task":"play","if":"succeeded"}]}`),
			})
		},
		Act:   tick,
		Judge: nodes(""),
	}
}
