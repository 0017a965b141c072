package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/lanefault"
	"github.com/runlane/runlane-go/internal/proof/race"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// TestRuntime_Memlane_UnderFaults runs the same table while calls between the runtime and the embedded lane go wrong: several of a
// scenario in each of the ways there are, and one alone in the two that differ for a caller. Each call alone, with the build tag
// conformance: scenario_conformance_test.go.
func TestRuntime_Memlane_UnderFaults(t *testing.T) {
	t.Parallel()
	sets := scenarios.FaultSets()
	if !testing.Short() && !race.Enabled {
		sets = append(sets,
			scenarios.Faults{Name: "OneAnswerLost", Kind: lanefault.After, EachCall: 3},
			scenarios.Faults{Name: "OneCallFailed", Kind: lanefault.Before, EachCall: 3})
	}
	for _, faults := range sets {
		t.Run(faults.Name, func(t *testing.T) {
			t.Parallel()
			underFaults(t, faults)
		})
	}
}

func underFaults(t *testing.T, faults scenarios.Faults) {
	t.Helper()
	scenarios.RunUnderFaults(t, scenarios.Harness{NewLane: func(testing.TB) *lane.Lane { return memlane.New() }, Virtual: true}, faults)
}
