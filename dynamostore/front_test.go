//go:build proof

package dynamostore_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lanetest"
)

// TestConformance_Front is the contract behind a front that answers as DynamoDB does: transactions that overlap conflict, indexes are up
// to three seconds late, answers get lost. Two shards, as in TestConformance_Endpoint.
func TestConformance_Front(t *testing.T) {
	t.Parallel()
	_, client := awstest.Front(t, nil)
	harness := storageHarness(client, awstest.Table(t, client), func(testing.TB) dynamostore.API { return fewShards{client} })
	harness.EventuallyConsistent, harness.LosesAnswers = true, true
	lanetest.RunStorage(t, harness)
}

// TestScenarios_Front is the runtime's table behind such a front.
func TestScenarios_Front(t *testing.T) {
	t.Parallel()
	f, client := awstest.Front(t, nil)
	harness := scenarioHarness(awstest.Table(t, client), func(testing.TB) dynamostore.API { return fewShards{client} })
	harness.Settle = func(t testing.TB) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := f.Settle(ctx); err != nil {
			t.Fatal(err)
		}
	}
	scenarios.RunUnderFaults(t, harness, scenarios.Faults{Name: "Front"})
}
