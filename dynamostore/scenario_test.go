package dynamostore_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// TestScenarios runs the runtime's table over this storage. Its wakeups stay in the process: the scenarios have a transport in
// their own hands anyway. Every environment has two shards: eight are TestConformance's.
func TestScenarios(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	lanetest.RunRuntime(t, lanetest.LaneHarness{New: scenarioHarness(table, func(testing.TB) dynamostore.API { return fewShards{client} }).NewLane})
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

// fewShards answers for the config item of every environment, as if an operator had put it there.
type fewShards struct{ dynamostore.API }

func (f fewShards) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if key, ok := in.Key["sk"].(*types.AttributeValueMemberS); ok && key.Value == "shards" {
		two := &types.AttributeValueMemberN{Value: "2"}
		return &dynamodb.GetItemOutput{Item: map[string]types.AttributeValue{"pk": in.Key["pk"], "sk": key, "wr": two, "rd": two}}, nil
	}
	return f.API.GetItem(ctx, in, o...)
}
