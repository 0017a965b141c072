package sqstransport_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqstransport"
)

func TestLocal_Conformance_Standard(t *testing.T) {
	t.Parallel()
	lanetest.RunTransport(t, harness(t, false, false, lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}))
}

// All queues of a transport share one SQS queue.
func TestLocal_Conformance_Shared(t *testing.T) {
	t.Parallel()
	lanetest.RunTransport(t, harness(t, false, true, lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}))
}

func TestLocal_Conformance_FIFO(t *testing.T) {
	t.Parallel()
	lanetest.RunTransport(t, harness(t, true, false, lane.TransportCapabilities{DurableDelivery: true, MessageGrouping: true, OrderedDelivery: true}))
}

func harness(t *testing.T, fifo, shared bool, capabilities lane.TransportCapabilities) lanetest.TransportHarness {
	t.Helper()
	client := awstest.SQS(t)
	with := func(t testing.TB, api sqstransport.API, queues []runlane.QueueName) lane.Transport {
		t.Helper()
		urls := map[runlane.QueueName]string{}
		for i, name := range queues {
			if urls[name] = urls[queues[0]]; i == 0 || !shared {
				urls[name] = awstest.LenientQueue(t, client, fifo)
			}
		}
		transport, err := sqstransport.New(api, urls, &sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := transport.Start(t.Context(), lane.StartOptions{Environment: lanetest.TransportEnvironment}); err != nil {
			t.Fatal(err)
		}
		return transport
	}
	return lanetest.TransportHarness{
		Capabilities: capabilities, Shared: shared, Receives: true, Depth: true, Deduplicates: fifo, MaxBytes: sqstransport.MaxMessageBytes,
		New: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
			t.Helper()
			return with(t, hasty{client}, queues)
		},
		Refusing: func(t testing.TB, refused []runlane.RunID, queues ...runlane.QueueName) lane.Transport {
			t.Helper()
			return with(t, refusing{hasty{client}, refused}, queues)
		},
		Down: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
			t.Helper()
			return with(t, down{hasty{client}}, queues)
		},
	}
}

// refusing takes messages out of requests, as SQS does with those that it cannot accept.
type refusing struct {
	hasty
	runs []runlane.RunID
}

func (r refusing) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	taken := *in
	taken.Entries = nil
	var failed []types.BatchResultErrorEntry
	for i := range in.Entries {
		e := &in.Entries[i]
		if slices.ContainsFunc(r.runs, func(id runlane.RunID) bool { return strings.Contains(aws.ToString(e.MessageBody), `"`+string(id)+`"`) }) {
			failed = append(failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InvalidMessageContents"), SenderFault: true})
		} else {
			taken.Entries = append(taken.Entries, *e)
		}
	}
	if len(taken.Entries) == 0 {
		return &sqs.SendMessageBatchOutput{Failed: failed}, nil
	}
	out, err := r.hasty.SendMessageBatch(ctx, &taken, options...)
	if err == nil {
		out.Failed = append(out.Failed, failed...)
	}
	return out, err
}

// down answers no request to send.
type down struct{ hasty }

func (down) SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, errors.New("connection refused")
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
