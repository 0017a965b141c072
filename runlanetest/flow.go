package runlanetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
)

// MustStartFlow is [core.Runtime.StartFlow], except that an error ends the test. It executes no runs: nodes without
// predecessors are due, and [Runtime.Settle], Advance or [Runtime.FinishFlow] calls their handlers.
func (rt *Runtime) MustStartFlow(f *runlane.Flow) *runlane.FlowState {
	rt.t.Helper()
	state, err := rt.StartFlow(rt.t.Context(), f, nil)
	if err != nil {
		rt.t.Fatalf("runlanetest: the flow was not started: %v", err)
	}
	return state
}

// Flow returns the current state of a flow, see [core.Flows.Get]. An error ends the test.
func (rt *Runtime) Flow(id runlane.FlowID) *runlane.FlowState {
	rt.t.Helper()
	state, err := rt.Flows().Get(rt.t.Context(), id)
	if err != nil {
		rt.t.Fatalf("runlanetest: flow %s cannot be read: %v", id, err)
	}
	return state
}

// FinishFlow moves the clock until a flow has ended, and returns it. Other due runs execute too. A flow that does not
// end fails the test, with the reason of one of its nodes.
func (rt *Runtime) FinishFlow(id runlane.FlowID) *runlane.FlowState {
	rt.t.Helper()
	defer rt.begin()()
	s := steps{rt: rt}
	for {
		waiting := s.settle()
		state := rt.Flow(id)
		if state.Status.Ended() {
			return state
		}
		open, here := rt.firstOpen(state)
		next, ok := rt.nextInstant(waiting)
		switch {
		case !here:
			rt.fail(open.RunID, fmt.Sprintf("node %q of flow %s executes elsewhere: end it with Complete or Fail, or "+
				"pass its handler in Options.Handlers", open.Name, id))
		case !ok:
			rt.fail(open.RunID, fmt.Sprintf("node %q of flow %s will never be due", open.Name, id))
		case s.spent():
			rt.fail(open.RunID, fmt.Sprintf("%d attempts and jumps of the clock led to no end (Options.MaxSteps)",
				rt.maxSteps))
		}
		rt.clock.moveTo(next)
	}
}

// firstOpen returns the first unended node that does not wait for other nodes, preferably one with a handler here; here
// reports whether it has one.
func (rt *Runtime) firstOpen(state *runlane.FlowState) (open runlane.NodeState, here bool) {
	for _, n := range state.Nodes {
		if n.Status == "" || n.Status.Terminal() || n.Waiting.Has(runlane.WaitingEnds) {
			continue
		}
		if rt.tasks[n.TaskID] {
			return n, true
		}
		if open.Name == "" {
			open = n
		}
	}
	return open, false
}

// RequireNodes ends the test unless the flow has exactly these nodes, in the order in which they were added, each as
// name and [runlane.NodeState.Words]: "build succeeded", "deploy waits".
func RequireNodes(t testing.TB, state *runlane.FlowState, want ...string) {
	t.Helper()
	var got []string
	for i := range state.Nodes {
		got = append(got, state.Nodes[i].Name+" "+state.Nodes[i].Words())
	}
	if !slices.Equal(want, got) {
		t.Fatalf("runlanetest: flow %s is %s and has other nodes (-want +got)\n%s",
			state.ID, state.Status, diff(want, got, same))
	}
}
