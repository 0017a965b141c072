package crash

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

func startFlow(ctx context.Context, p *Process, do string) error {
	_, err := p.Runtime.StartFlow(ctx, flowOf(do), nil)
	return err
}

// started is a flow whose nodes have executed as far as they can.
func started(do string) func(p *Process) {
	return func(p *Process) {
		p.Must(startFlow(context.Background(), p, do))
		p.Deliver()
	}
}

func flow(p *Process) *runlane.FlowState {
	state, err := p.Runtime.Flows().Get(context.Background(), flowID)
	p.Must(err)
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
	ending := Delivering("delivery of nodes")
	ending.Judge = nodes("sssc")
	ending.Prepare = func(p *Process) { p.Must(startFlow(context.Background(), p, "")) }
	ending.AtOnce = 3 // a, b and what they lead to

	last := ending
	last.Name, last.AtOnce = "delivery of the last node", 2 // c, and what it leads to
	last.Prepare = func(p *Process) {
		ending.Prepare(p)
		p.DeliverOnce()
	}
	return slices.Concat([]Scenario{
		operating("start a flow", nil, func(ctx context.Context, p *Process) error {
			return startFlow(ctx, p, "")
		}, nodes("sssc")),
		ending, last, cancelling(), retrying(), pruning(),
		tending("tick that goes on with a cancellation", doAsk, func(f *lane.FlowRecord) { f.Closed = 1 }, "ccss"),
		tending("tick that finds a flow that is whole", "", func(*lane.FlowRecord) {}, "sssc"),
		unmade(),
	}, answering())
}

func cancelling() Scenario {
	stop := func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Flows().Cancel(ctx, flowID, nil)
		return err
	}
	s := operating("cancel a flow", started(doAsk), stop, nodes("ccss"))
	s.Repeat = func(p *Process) {
		if !flow(p).Cancelled {
			p.Must(stop(context.Background(), p))
		}
		p.Deliver()
	}
	return s
}

func retrying() Scenario {
	retry := func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Flows().Retry(ctx, flowID, &core.RetryFlowOptions{NothingUndone: true})
		return err
	}
	s := operating("retry a flow", started(doRefuse), retry, func(e *End) {
		nodes("ffss")(e)
		if len(e.Runs) != 8 {
			e.Fault("there are %d runs, not 8", len(e.Runs))
		}
	})
	s.Repeat = func(p *Process) {
		state := flow(p)
		unmade := slices.ContainsFunc(state.Nodes, func(n runlane.NodeState) bool { return n.Status == "" })
		if state.Retries == 0 || unmade {
			p.Must(retry(context.Background(), p))
		}
		p.Deliver()
	}
	return s
}

// answering has a flow of which one node waits for its answer.
func answering() []Scenario {
	signalNode := func(ctx context.Context, p *Process, name string) error {
		return p.Runtime.SignalNode(ctx, runlane.Node{Flow: flowID, Name: name}, approved.With(by), once())
	}
	asked := func(do string) func(p *Process) {
		return func(p *Process) {
			started(do)(p)
			p.Must(signalNode(context.Background(), p, "b"))
		}
	}
	telling := Delivering("delivery that signals a node", Play.With(Act{Name: "beside", Do: doTell}))
	telling.Judge = nodes("sssc")
	triggered := telling.Prepare
	telling.Prepare = func(p *Process) {
		asked(doAsk)(p)
		triggered(p)
	}
	telling.AtOnce = 3 // b, the one beside, and what they lead to
	return []Scenario{
		telling,
		operating("signal a node", asked(doAsk), func(ctx context.Context, p *Process) error {
			return signalNode(ctx, p, "a")
		}, nodes("sssc")),
		operating("answer a node by its token", func(p *Process) {
			asked(doMail)(p)
			keepToken(p, flow(p).Nodes[0].RunID)
		}, answer, nodes("sssc")),
	}
}

func pruning() Scenario {
	return operating("prune a flow", func(p *Process) {
		started("")(p)
		for _, n := range flow(p).Nodes {
			p.Gone[n.RunID] = true
		}
		p.Advance(time.Hour)
	}, func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Minute})
		return err
	}, func(e *End) {
		_, err := e.Runtime.Flows().Get(context.Background(), flowID)
		if len(e.Runs) > 0 || runlane.CodeOf(err) != runlane.ErrFlowNotFound {
			e.Fault("%d runs are left, and the flow's error is %v", len(e.Runs), err)
		}
	})
}

// tending is a tick that has to look at a flow: its process died with a change.
func tending(name, do string, died func(f *lane.FlowRecord), want string) Scenario {
	return Scenario{
		Name: name,
		Prepare: func(p *Process) {
			p.Must(startFlow(context.Background(), p, do))
			if do == doAsk {
				p.Deliver()
			}
			f, err := p.storage().GetFlow(context.Background(), &lane.FlowRead{
				FlowKey: lane.FlowKey{Environment: p.Runtime.Environment(), FlowID: flowID},
			})
			p.Must(err)
			died(f)
			f.Plan, f.TendAt = nil, runlane.UTCMillis(p.Now())
			putFlow(p, f)
		},
		Act:   tick,
		Judge: nodes(want),
	}
}

func putFlow(p *Process, f *lane.FlowRecord) {
	command := &lane.FlowCommand{Environment: p.Runtime.Environment(), Flow: *f}
	_, err := p.storage().PutFlow(context.Background(), command)
	p.Must(err)
}

// unmade is a tick that cancels a flow of which nothing was made within its hour.
func unmade() Scenario {
	return Scenario{
		Name: "tick that closes a flow",
		Prepare: func(p *Process) {
			at := runlane.UTCMillis(p.Now())
			putFlow(p, &lane.FlowRecord{
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
