package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// TestScenarios runs the runtime's table over this storage. Its wakeups stay in the process: the scenarios have a transport in
// their own hands anyway.
func TestScenarios(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	lanetest.RunRuntime(t, lanetest.LaneHarness{New: scenarioHarness(table, func(testing.TB) dynamostore.API { return client }).NewLane})
}

// scenarioHarness makes lanes over a table through clients that may be a scenario's own.
func scenarioHarness(table string, client func(testing.TB) dynamostore.API) scenarios.Harness {
	return scenarios.Harness{NewLane: func(t testing.TB) *lane.Lane {
		t.Helper()
		l, err := lane.New(dynamostore.New(client(t), table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout}), memlane.NewTransport(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}}
}
