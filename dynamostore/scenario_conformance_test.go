//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/fault/ddbfault"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
)

// TestScenarios_UnderMoreFaults runs the runtime's table while requests to DynamoDB go wrong, and while wakeups are lost or come
// twice. What one in three or five writes meets, the store's own retries keep from the runtime.
func TestScenarios_UnderMoreFaults(t *testing.T) {
	t.Parallel()
	for name, rates := range map[string]map[ddbfault.Kind]float64{
		"LostAnswers":         {ddbfault.LostAnswer: 0.3},
		"Conflicts":           {ddbfault.Conflict: 0.3},
		"Throttles":           {ddbfault.Throttle: 0.2},
		"Outages":             {ddbfault.Outage: 0.2},
		"TimeoutsAfterCommit": {ddbfault.Timeout: 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenariosUnderFaults(t, scenarios.Faults{Name: name}, rates)
		})
	}
	for _, faults := range scenarios.FaultSets() {
		if faults.WakeupsTwice || faults.Kind == lanefault.Loss {
			t.Run(faults.Name, func(t *testing.T) {
				t.Parallel()
				scenariosUnderFaults(t, faults, nil)
			})
		}
	}
}
