package lives

import (
	"context"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// graph is a flow of a life.
type graph struct {
	id       runlane.FlowID
	nodes    []graphNode
	answered bool // a caller was told that it is there
	finished bool // once; pruning may have removed it since
}

type graphNode struct {
	name      string
	task      *task
	load      payload
	after     []int
	condition runlane.Condition
}

const (
	mostGraphs = 2
	mostNodes  = 5
)

var conditions = []runlane.Condition{
	runlane.IfSucceeded, runlane.IfSucceeded, runlane.IfSucceeded, runlane.IfFailed, runlane.IfFailed, runlane.Always,
}

var nodeTasks = []*task{taskOf("once"), taskOf("once"), taskOf("again"), taskOf("slot"), waiters[0]}

// drawGraph draws one whose nodes go after any of those before them.
func (l *life) drawGraph() *graph {
	g := &graph{id: runlane.FlowID(fmt.Sprint("flow-", len(l.graphs)))}
	for i := range 2 + l.below("nodes", mostNodes-1) {
		n := graphNode{
			name:      fmt.Sprint("node-", i),
			task:      pick(l, "node's task", nodeTasks),
			load:      payload{N: i},
			condition: pick(l, "condition", conditions),
		}
		for before := range i {
			if l.chance("after", 2) {
				n.after = append(n.after, before)
			}
		}
		if len(n.after) == 0 {
			n.condition = runlane.IfSucceeded
		}
		if n.task.waits() {
			n.load.Program = pick(l, "program", programs)
		}
		g.nodes = append(g.nodes, n)
	}
	return g
}

// flow is the graph as a process knows its tasks.
func (g *graph) flow(p *process) *runlane.Flow {
	f := runlane.NewFlow(g.id)
	for _, n := range g.nodes {
		options := &runlane.NodeOptions{If: n.condition}
		for _, before := range n.after {
			options.After = append(options.After, runlane.Node{Flow: g.id, Name: g.nodes[before].name})
		}
		f.Add(n.name, p.tasks[n.task.id].With(n.load), options)
	}
	return f
}

// stepFlow starts one, or starts again what was started.
func (l *life) stepFlow() bool {
	var g *graph
	switch again := len(l.graphs) > 0 && l.chance("again", 3); {
	case again:
		g = pick(l, "flow", l.graphs)
	case len(l.graphs) == mostGraphs || len(l.book.runs()) >= mostRuns-2:
		return false
	default:
		g = l.drawGraph()
		l.graphs = append(l.graphs, g)
	}
	p := l.process()
	l.note("  %s: %s %v", p.name, g.id, g.nodes)
	state, err := p.rt.StartFlow(l.ctx, g.flow(p), nil)
	l.allows(p, "start", err)
	if err == nil && !p.dead.Load() {
		g.answered = true
		l.judgeNodes(g, state)
	}
	return true
}

func (l *life) stepFlowCancel() bool {
	if len(l.graphs) == 0 {
		return false
	}
	p, g := l.process(), pick(l, "flow", l.graphs)
	options := &core.CancelFlowOptions{Everything: l.chance("everything", 3)}
	l.note("  %s: %s, everything: %t", p.name, g.id, options.Everything)
	_, err := p.rt.Flows().Cancel(l.ctx, g.id, options)
	l.allows(p, "cancel", err, runlane.ErrFlowNotFound, runlane.ErrValidationFailed)
	return true
}

func (l *life) stepFlowRetry() bool {
	if len(l.graphs) == 0 || len(l.book.runs()) >= mostRuns+mostNodes {
		return false
	}
	g := pick(l, "flow", l.graphs)
	if before, err := l.observer.rt.Flows().Get(l.ctx, g.id); err == nil && before.FinishedAt.IsZero() &&
		!l.chance("too early", 10) {
		return false
	}
	p := l.process()
	options := &core.RetryFlowOptions{NothingUndone: l.chance("nothing undone", 2)}
	l.note("  %s: %s, nothing undone: %t", p.name, g.id, options.NothingUndone)
	state, err := p.rt.Flows().Retry(l.ctx, g.id, options)
	l.allows(p, "retry", err, runlane.ErrFlowNotFound, runlane.ErrValidationFailed)
	if err == nil && !p.dead.Load() {
		l.tally.add("flow", "retried", 1)
		l.judgeNodes(g, state)
	}
	return true
}

// retryFlows retries the flows that have finished, where anything is to be retried.
func (l *life) retryFlows() (retried bool) {
	for _, g := range l.graphs {
		before := l.flowState(g)
		if before == nil || !l.chance("retry", 2) {
			continue
		}
		options := &core.RetryFlowOptions{NothingUndone: l.chance("nothing undone", 2)}
		state, err := l.observer.rt.Flows().Retry(l.ctx, g.id, options)
		switch {
		case err == nil && state.Retries > before.Retries && undone(before) && !options.NothingUndone:
			l.fail("flow %s was undone, and is retried:\n%s", g.id, before)
		case err == nil:
			l.note("  %s is retried:\n%s", g.id, state)
			l.tally.add("flow", "retried", 1)
			retried = true
		case runlane.CodeOf(err) != runlane.ErrValidationFailed: // it has succeeded, was undone, or is pruned
			l.fail("retry of flow %s: %v", g.id, err)
		}
	}
	return retried
}

// undone reports a node that has undone what others began.
func undone(state *runlane.FlowState) bool {
	return slices.ContainsFunc(state.Nodes, func(n runlane.NodeState) bool {
		return n.If == runlane.IfFailed && n.Status == runlane.StatusSucceeded
	})
}

// flowsGoOn reports a flow that has not finished.
func (l *life) flowsGoOn() bool {
	return slices.ContainsFunc(l.graphs, func(g *graph) bool {
		state := l.flowState(g)
		return state != nil && state.FinishedAt.IsZero()
	})
}

// flowState is nil for a flow that was never made, or is pruned.
func (l *life) flowState(g *graph) *runlane.FlowState {
	state, err := l.observer.rt.Flows().Get(l.ctx, g.id)
	switch {
	case runlane.CodeOf(err) == runlane.ErrFlowNotFound && (!g.answered || g.finished):
		return nil
	case err != nil:
		l.fail("flow %s: %v", g.id, err)
	}
	g.finished = g.finished || !state.FinishedAt.IsZero()
	return state
}

// judgeFlow says the end of a flow: it has finished, and each node ran if its condition was met.
func (l *life) judgeFlow(g *graph) {
	state := l.flowState(g)
	if state == nil {
		return
	}
	if state.FinishedAt.IsZero() || !state.Status.Ended() {
		l.fail("flow %s does not end:\n%s", g.id, state)
	}
	l.tally.add("flow", string(state.Status), 1)
	l.judgeNodes(g, state)
}

// judgeNodes judges those that have ended.
func (l *life) judgeNodes(g *graph, state *runlane.FlowState) {
	if len(state.Nodes) != len(g.nodes) {
		l.fail("flow %s has %d nodes, and was started with %d", g.id, len(state.Nodes), len(g.nodes))
	}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if n.Attempts > 0 || n.Status != runlane.StatusCancelled {
			continue
		}
		reason := l.cancelledFor(n.RunID)
		met, known := meets(state, n)
		switch {
		case !known:
		case reason == "the runs before it did not end as its condition wants" && met:
			l.fail("the condition of node %s of flow %s was met, and it was cancelled:\n%s", n.Name, g.id, state)
		case reason == "the flow was cancelled" && !state.Cancelled && state.Retries == 0:
			l.fail("flow %s was not cancelled, and its node %s was:\n%s", g.id, n.Name, state)
		}
		l.tally.add("node never began", reason, 1)
	}
}

// cancelledFor is the reason of a cancelled run.
func (l *life) cancelledFor(id runlane.RunID) string {
	q := &lane.EventQuery{RunID: id}
	q.Environment, q.Limit = l.world.Environment, runlane.MaxPageLimit
	page, err := l.truth.ListRunEvents(l.ctx, q)
	if err != nil {
		return "" // pruned
	}
	for i := range page.Items {
		if body, is := page.Items[i].Event.Body.(*runlane.RunCancelled); is {
			return body.Reason
		}
	}
	return ""
}

// meets reports that what a node goes after ended as its condition wants. It is unknown where something has not ended,
// and of a node that undoes after a retry: it is owed what began in earlier rounds.
func meets(state *runlane.FlowState, n *runlane.NodeState) (met, known bool) {
	failed, succeeded := false, true
	for _, name := range n.After {
		before, _ := state.Node(name)
		missing := before.Status == "" && state.Cancelled
		if !missing && !before.Status.Terminal() {
			return false, false
		}
		if before.Status != runlane.StatusSucceeded {
			succeeded = false
			failed = failed || before.Attempts > 0
		}
	}
	switch n.If {
	case runlane.Always:
		return true, true
	case runlane.IfFailed:
		return failed, failed || state.Retries == 0
	default:
		return succeeded, true
	}
}

// judgeNode judges that a node executes: all that it goes after has ended, as its condition wants.
func (p *process) judgeNode(ctx context.Context, run *runlane.Run) {
	if run.Source.Type != runlane.SourceFlow || p.dead.Load() {
		return
	}
	state, err := p.life.observer.rt.Flows().Get(ctx, run.Source.FlowID)
	if err != nil {
		p.life.book.finds("flow %s of node %s: %v", run.Source.FlowID, run.Source.Node, err)
		return
	}
	n, _ := state.Node(run.Source.Node)
	if n.RunID != run.ID {
		return // of an earlier round: its worker was overtaken
	}
	met, known := meets(state, &n)
	owed := n.If == runlane.IfFailed && state.Retries > 0
	if !met && !owed || !known && !owed {
		p.life.book.finds("node %s of flow %s executes too early, or never should:\n%s", n.Name, state.ID, state)
	}
	p.life.tally.add("node", string(n.If), 1)
}
