package sqstransport_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqstransport"
)

func TestLocal_Conformance_Standard(t *testing.T) {
	t.Parallel()
	lanetest.RunTransport(t, harness(t, false, lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}))
}

func TestLocal_Conformance_FIFO(t *testing.T) {
	t.Parallel()
	lanetest.RunTransport(t, harness(t, true, lane.TransportCapabilities{DurableDelivery: true, MessageGrouping: true, OrderedDelivery: true}))
}

func harness(t *testing.T, fifo bool, capabilities lane.TransportCapabilities) lanetest.TransportHarness {
	t.Helper()
	client := awstest.SQS(t)
	return lanetest.TransportHarness{
		Capabilities: capabilities, Receives: true, Depth: true,
		New: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
			t.Helper()
			urls := map[runlane.QueueName]string{}
			for _, name := range queues {
				urls[name] = awstest.Queue(t, client, fifo).URL
			}
			transport, err := sqstransport.New(hasty{client}, urls, &sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := transport.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return transport
		},
	}
}

// hasty hands back after a second instead of ten, twenty, forty: those delays have their own tests, in virtual time.
type hasty struct{ *sqs.Client }

func (h hasty) ChangeMessageVisibilityBatch(
	ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, options ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	for i := range in.Entries {
		if e := &in.Entries[i]; time.Duration(e.VisibilityTimeout)*time.Second != sqstransport.DefaultVisibility { // not an extension
			e.VisibilityTimeout = min(e.VisibilityTimeout, 1)
		}
	}
	return h.Client.ChangeMessageVisibilityBatch(ctx, in, options...)
}
