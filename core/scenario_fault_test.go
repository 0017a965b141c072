package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/race"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// TestRuntime_Memlane_UnderFaults runs the same table while calls between the runtime and the embedded lane go wrong: several of a
// scenario in each of the ways there are, and one alone in the two that differ for a caller. Each call alone, with the build tag
// conformance: scenario_conformance_test.go.
func TestRuntime_Memlane_UnderFaults(t *testing.T) {
	t.Parallel()
	sets := lanetest.RuntimeFaultSets()
	if !testing.Short() && !race.Enabled {
		sets = append(sets,
			lanetest.RuntimeFaults{Name: "OneAnswerLost", Kind: lanetest.FaultAfter, EachCall: 3},
			lanetest.RuntimeFaults{Name: "OneCallFailed", Kind: lanetest.FaultBefore, EachCall: 3})
	}
	for _, faults := range sets {
		t.Run(faults.Name, func(t *testing.T) {
			t.Parallel()
			underFaults(t, faults)
		})
	}
}

func underFaults(t *testing.T, faults lanetest.RuntimeFaults) {
	t.Helper()
	lanetest.RunRuntimeUnderFaults(t, lanetest.RuntimeHarness{NewLane: func(testing.TB) *lane.Lane { return memlane.New() }, Virtual: true}, faults)
}
