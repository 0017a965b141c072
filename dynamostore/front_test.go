//go:build conformance

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/awstest"
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
