//go:build proof

package dynamostore_test

import (
	"sync"
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/ddbfault"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
)

// TestScenarios_UnderFaults runs the parts of the runtime's table that write most while requests to DynamoDB go wrong. All of it, and
// more kinds of faults, with the build tag conformance: scenario_conformance_test.go.
func TestScenarios_UnderFaults(t *testing.T) {
	t.Parallel()
	scenariosUnderFaults(t, scenarios.Faults{Name: "LostAnswersAndConflicts", Groups: []string{"Trigger", "Outcome", "Queues"}},
		map[ddbfault.Kind]float64{ddbfault.Conflict: 0.1, ddbfault.LostAnswer: 0.1})
}

// scenariosUnderFaults runs the table while requests to DynamoDB go wrong.
func scenariosUnderFaults(t *testing.T, faults scenarios.Faults, rates map[ddbfault.Kind]float64) {
	t.Helper()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	count := &faultCount{happened: map[ddbfault.Kind]int{}}
	t.Cleanup(func() { count.verify(t, rates) })
	harness := scenarioHarness(table, func(t testing.TB) dynamostore.API {
		t.Helper()
		faulty := ddbfault.New(t, client, ddbfault.Plan{Rates: rates})
		t.Cleanup(func() { count.add(faulty, rates) })
		return fewShards{faulty}
	})
	scenarios.RunUnderFaults(t, harness, faults)
}

// faultCount proves that the faults happened: a plan that never strikes proves nothing.
type faultCount struct {
	mu       sync.Mutex
	happened map[ddbfault.Kind]int
}

func (f *faultCount) add(c *ddbfault.Client, rates map[ddbfault.Kind]float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind := range rates {
		f.happened[kind] += c.Happened(kind)
	}
}

func (f *faultCount) verify(t *testing.T, rates map[ddbfault.Kind]float64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind := range rates {
		if f.happened[kind] == 0 {
			t.Errorf("%s never happened", kind)
		}
	}
}
