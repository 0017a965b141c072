package shown

import (
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Depths returns the length of the longest path to each node of a flow. It terminates even on a damaged flow with a
// cycle.
func Depths(state *runlane.FlowState) map[string]int {
	after := make(map[string][]string, len(state.Nodes))
	for i := range state.Nodes {
		after[state.Nodes[i].Name] = state.Nodes[i].After
	}
	depth := make(map[string]int, len(state.Nodes))
	var of func(name string) int
	of = func(name string) int {
		known, ok := depth[name]
		if ok {
			return known
		}
		depth[name] = 0 // ends a cycle
		for _, before := range after[name] {
			known = max(known, of(before)+1)
		}
		depth[name] = known
		return known
	}
	for i := range state.Nodes {
		of(state.Nodes[i].Name)
	}
	return depth
}

// After describes a node's predecessors and condition: "build, test if failed".
func After(n *runlane.NodeState) string {
	after := strings.Join(n.After, ", ")
	if n.If != "" && n.If != runlane.IfSucceeded && after != "" {
		after += " if " + string(n.If)
	}
	return after
}

// More describes the runs of a call that are not shown: "… 950 more: 938 succeeded, 12 failed".
func More(call *core.CallTree) string {
	more := call.Count - len(call.Runs)
	if more == 0 {
		return ""
	}
	var parts []string
	for _, status := range runlane.Statuses() {
		if n := call.More[status]; n > 0 {
			more -= n
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	switch {
	case more > 0 && call.Statuses == nil:
		parts = append(parts, fmt.Sprintf("%d not looked at", more))
	case more > 0:
		parts = append(parts, fmt.Sprintf("%d not there", more))
	}
	return fmt.Sprintf("… %d more: %s", call.Count-len(call.Runs), strings.Join(parts, ", "))
}
