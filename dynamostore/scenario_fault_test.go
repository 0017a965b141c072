//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
)

// TestScenarios_UnderFaults runs the runtime's table while requests to DynamoDB are refused and answers get lost: the store's own
// retries keep it from the runtime.
func TestScenarios_UnderFaults(t *testing.T) {
	t.Parallel()
	scenariosUnderFaults(t, refusing(t, 0.1, 0.1), scenarios.Faults{Name: "Requests"})
}

// TestScenarios_UnderMoreFaults runs it while wakeups are lost or come twice.
func TestScenarios_UnderMoreFaults(t *testing.T) {
	t.Parallel()
	for _, faults := range scenarios.FaultSets() {
		if faults.WakeupsTwice || faults.Kind == lanefault.Loss {
			t.Run(faults.Name, func(t *testing.T) {
				t.Parallel()
				scenariosUnderFaults(t, awstest.DynamoDB(t), faults)
			})
		}
	}
}

func scenariosUnderFaults(t *testing.T, client dynamostore.API, faults scenarios.Faults) {
	t.Helper()
	table := awstest.Table(t, awstest.DynamoDB(t))
	harness := scenarioHarness(table, func(testing.TB) dynamostore.API { return fewShards{client} })
	limited := harness.NewLane
	harness.NewLane = func(t testing.TB) *lane.Lane {
		t.Helper()
		l := limited(t)
		l.Storage = awstest.Unlimited{Storage: l.Storage}
		return l
	}
	scenarios.RunUnderFaults(t, harness, faults)
}
