package console

import (
	"fmt"
	"hash/fnv"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// A form that depends on what the person saw carries a fingerprint of it. If someone else has acted in the meantime,
// the same button could do something else, so it is refused.

// seen is the hidden field with the fingerprint.
func seen(what string) g.Node { return h.Input(h.Type("hidden"), h.Name("seen"), h.Value(what)) }

// checkSeen refuses a form if its object has changed.
func (v *visitor) checkSeen(kind runlane.ConflictKind, now string) error {
	if v.r.PostFormValue("seen") == now {
		return nil
	}
	e := runlane.NewConflict(kind, "this has changed since you looked; nothing was done")
	e.Hint = "go back, read the page again, and decide anew"
	return e
}

// runSeen is the fingerprint of a waiting run: its event sequence differs for each wait.
func runSeen(run *runlane.Run) string { return fmt.Sprint(run.EventSequence) }

// flowSeen is the fingerprint of a flow: its retries, and the runs and statuses of its nodes.
func flowSeen(state *runlane.FlowState) string {
	sum := fnv.New64a()
	for i := range state.Nodes {
		_, _ = fmt.Fprintln(sum, state.Nodes[i].RunID, state.Nodes[i].Status) // writing to a hash cannot fail
	}
	return fmt.Sprintf("%d.%x", state.Retries, sum.Sum64())
}

// formSignal returns the ID of a signal from the form of a wait: sent twice it is one signal; another body is a
// conflict.
func formSignal(run *runlane.Run, name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // writing to a hash cannot fail
	return fmt.Sprintf("console-%s-%x", runSeen(run), sum.Sum64())
}
