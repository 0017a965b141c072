package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/lanefault"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
)

// The runtime's scenarios while wakeups are lost, or come twice.
func TestRuntime_Scenarios_UnderFaults(t *testing.T) {
	t.Parallel()
	for _, faults := range scenarios.FaultSets() {
		if faults.WakeupsTwice || faults.Kind == lanefault.Loss {
			t.Run(faults.Name, func(t *testing.T) {
				t.Parallel()
				scenarios.RunUnderFaults(t, scenarios.Harness{NewLane: fresh}, faults)
			})
		}
	}
}
