package shown

import (
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

type FlowChange struct {
	Flow    runlane.FlowID     `json:"flowId"`
	Status  runlane.FlowStatus `json:"status"`
	Open    []string           `json:"open,omitempty"`    // nodes whose runs have not ended
	Renewed []string           `json:"renewed,omitempty"` // nodes that get new runs by a retry
	Dry     bool               `json:"dryRun,omitempty"`
}

// FlowChangeOf shows a flow after a change. renewed are the nodes with new runs of a retry.
func FlowChangeOf(state *runlane.FlowState, renewed []string) *FlowChange {
	seen := &FlowChange{Flow: state.ID, Status: state.Status, Renewed: renewed}
	for i := range state.Nodes {
		if OpenNode(&state.Nodes[i]) {
			seen.Open = append(seen.Open, state.Nodes[i].Name)
		}
	}
	return seen
}

func OpenNode(n *runlane.NodeState) bool { return n.Status != "" && !n.Status.Terminal() }

// FlowStatuses reads statuses of flows separated by commas. unknown is the first unknown word, or nil.
func FlowStatuses(text string) (found []runlane.FlowStatus, unknown *string) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		status := runlane.FlowStatus(word)
		switch {
		case !slices.Contains(runlane.FlowStatuses(), status):
			return nil, &word
		case !slices.Contains(found, status):
			found = append(found, status)
		}
	}
	return found, nil
}

func FlowStatusWords() []string {
	var words []string
	for _, status := range runlane.FlowStatuses() {
		words = append(words, string(status))
	}
	return words
}
