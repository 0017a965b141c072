package flow

import (
	"encoding/json"
	"testing"

	"github.com/runlane/runlane-go"
)

// A flow that was accepted can be retried as often as flows may: each node has its room for that.
func TestPlannedNode_AfterEveryRetry_IsWithinItsRoom(t *testing.T) {
	t.Parallel()
	n := plannedNode{Name: "node", Task: "task", If: runlane.IfFailed}
	begin, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= runlane.MaxFlowRetries; round++ {
		n.addRound(round)
		grown := n
		grown.Owed, grown.End = true, runlane.StatusSucceeded
		encoded, err := json.Marshal(grown)
		if err != nil || len(encoded) > len(begin)+retryRoom {
			t.Fatalf("round %d: %s, %v", round, encoded, err)
		}
		if n.times() != round || n.Before[0] != 0 || n.Before[len(n.Before)-1] != round-1 {
			t.Fatalf("round %d: %s", round, encoded)
		}
	}
}
