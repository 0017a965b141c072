//go:build proof

package dynamostore_test

import (
	"math/rand/v2"
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/ddbfault"
	"github.com/runlane/runlane-go/lanetest"
)

// The contract holds whatever the outcome of single requests: a store that gave up, or that took its own write for another's,
// would fail a case. More kinds of faults, with the build tag conformance: endpoint_test.go.
func TestConformance_UnderFaults(t *testing.T) {
	t.Parallel()
	conformUnderFaults(t, map[ddbfault.Kind]float64{ddbfault.Conflict: 0.2, ddbfault.LostAnswer: 0.2})
}

func conformUnderFaults(t *testing.T, rates map[ddbfault.Kind]float64) {
	t.Helper()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	plan := ddbfault.Plan{Seed: rand.Uint64(), Rates: rates} // a choice of faults
	t.Logf("seed %d", plan.Seed)
	faults := &faultCount{happened: map[ddbfault.Kind]int{}}
	t.Cleanup(func() { faults.verify(t, rates) })
	harness := storageHarness(client, table, func(t testing.TB) dynamostore.API {
		t.Helper()
		faulty := ddbfault.New(t, client, plan)
		t.Cleanup(func() { faults.add(faulty, rates) })
		return faulty
	})
	harness.EventuallyConsistent = rates[ddbfault.StaleIndex] > 0
	harness.LosesAnswers = rates[ddbfault.LostAnswer]+rates[ddbfault.Timeout]+rates[ddbfault.Outage] > 0
	lanetest.RunStorage(t, harness)
}
