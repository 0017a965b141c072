//go:build proof

package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// The runtime's scenarios while several calls of each go wrong between the runtime and the memory lane.
func TestRuntime_Memlane_UnderFaults(t *testing.T) {
	t.Parallel()
	underFaults(t, scenarios.FaultSets())
}

// Every scenario once for each call that it makes, and just that call goes wrong.
func TestRuntime_Memlane_EachCallOnce(t *testing.T) {
	t.Parallel()
	sets := scenarios.FaultSets()
	for i := range sets {
		sets[i].EachCall = 1
	}
	underFaults(t, sets)
}

func underFaults(t *testing.T, sets []scenarios.Faults) {
	t.Helper()
	for _, faults := range sets {
		t.Run(faults.Name, func(t *testing.T) {
			t.Parallel()
			harness := scenarios.Harness{NewLane: func(testing.TB) *lane.Lane { return memlane.New() }, Virtual: true}
			scenarios.RunUnderFaults(t, harness, faults)
		})
	}
}
