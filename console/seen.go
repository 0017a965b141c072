package console

import (
	"fmt"
	"hash/fnv"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// A form of a change that depends on what a person saw says what that was: where another one has acted meanwhile, the
// same button would do something else.

// seen is the field that says what was seen.
func seen(what string) g.Node { return h.Input(h.Type("hidden"), h.Name("seen"), h.Value(what)) }

// asSeen refuses a form of what has changed since.
func (v *visitor) asSeen(kind runlane.ConflictKind, now string) error {
	if v.r.PostFormValue("seen") == now {
		return nil
	}
	e := runlane.NewConflict(kind, "this has changed since you looked; nothing was done")
	e.Hint = "go back, read the page again, and decide anew"
	return e
}

// runSeen is what a person sees of a run that waits: its number of events tells one wait from the next.
func runSeen(run *runlane.Run) string { return fmt.Sprint(run.EventSequence) }

// flowSeen is what a person sees of a flow: its round, and the runs of its nodes.
func flowSeen(state *runlane.FlowState) string {
	sum := fnv.New64a()
	for i := range state.Nodes {
		_, _ = fmt.Fprintln(sum, state.Nodes[i].RunID, state.Nodes[i].Status) // of a hash: never fails
	}
	return fmt.Sprintf("%d.%x", state.Retries, sum.Sum64())
}

// formSignal is the id of a signal by the form of a wait: sent twice it is one signal, and another body is a conflict.
func formSignal(run *runlane.Run, name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // of a hash: never fails
	return fmt.Sprintf("console-%s-%x", runSeen(run), sum.Sum64())
}
