package awslane_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func TestLocal_Conformance(t *testing.T) {
	t.Parallel()
	cfg, db, queues := awstest.Config(t), awstest.LocalStackDynamoDB(t), awstest.SQS(t)
	lanetest.RunLane(t, lanetest.LaneHarness{
		Capabilities: lane.Capabilities{
			Storage:   dynamostore.New(nil, "", nil).Capabilities(),
			Transport: lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true},
		},
		ProductionDurable: true, OperatorReads: true,
		New: func(t testing.TB) *lane.Lane {
			t.Helper()
			l, err := awslane.New(cfg, awslane.Options{
				Table: awstest.StreamedTable(t, db), Logger: slog.New(slog.DiscardHandler),
				Queues: map[runlane.QueueName]string{"default": awstest.Queue(t, queues, false).URL},
			})
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	})
}
