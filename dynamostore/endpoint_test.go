//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lanetest"
)

// TestConformance_Endpoint is the same over the endpoint of the standard variables: LocalStack where local AWS was started here, and
// any other that AWS_ENDPOINT_URL names. An index may be late there. Every environment has two shards, which takes a third of
// the requests: eight are TestConformance's.
func TestConformance_Endpoint(t *testing.T) {
	t.Parallel()
	client := awstest.LocalStackDynamoDB(t)
	harness := storageHarness(client, awstest.Table(t, client), func(testing.TB) dynamostore.API { return fewShards{client} })
	harness.EventuallyConsistent = true
	lanetest.RunStorage(t, harness)
}
