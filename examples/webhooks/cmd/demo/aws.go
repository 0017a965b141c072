package main

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/lane"
)

const (
	// invocationTimeout leaves enough for one attempt. It is short because a resumed demo waits for the leases and the
	// messages that the killed one held.
	invocationTimeout = 20 * time.Second
	visibilityTimeout = invocationTimeout + 10*time.Second
	// tickEvery stands for EventBridge's minute.
	tickEvery = 2 * time.Second
)

// onAWS is the deployed application in one process: the application that triggers and the three functions, each with a
// runtime and a separate lane, fed from queue, stream and clock as Lambda feeds them.
func onAWS(open func(context.Context) (*lane.Lane, error)) demo.Engine {
	return demo.Engine{
		Name: "aws", DeferEvery: 5, Durable: true, Separate: true,
		Lane:     open,
		Patience: 2 * time.Minute, PollEvery: 250 * time.Millisecond, SweepEvery: 5 * time.Second,
		Work: runFunctions,
	}
}

// emulated is awslane's scheme for emulators only: the demo's many small runs, and what it leaves behind, have no place
// in a real account.
var emulated = lane.Scheme{Name: awslane.Scheme.Name, Form: awslane.Scheme.Form, Open: openEmulated}

func openEmulated(ctx context.Context, rest string) (*lane.Lane, error) {
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "AWS_ENDPOINT_URL is not set",
			Hint:    `run "make demo-aws", which starts local AWS`,
		}
	}
	return awslane.Scheme.Open(ctx, rest)
}

func runFunctions(ctx context.Context, w *demo.Workplace) error {
	sources, err := findSources(ctx)
	if err != nil {
		return err
	}
	var runtimes []*core.Runtime
	defer func() { // their work has ended by then
		for _, rt := range runtimes {
			_ = rt.Close(context.WithoutCancel(ctx))
		}
	}()
	for _, role := range []demo.Role{demo.Bridge, demo.Relay, demo.Tick} {
		rt, err := w.Open(ctx, role)
		if err != nil {
			return err
		}
		runtimes = append(runtimes, rt)
	}
	bridge, relay, tick := functions.Bridge(runtimes[0]), functions.Relay(runtimes[1]), functions.Tick(runtimes[2])

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { // SQS to bridge
		return eventsource.Queue(ctx, brief{sources.queues}, sources.queueURL, &eventsource.QueueOptions{
			Logger: w.Log, Timeout: invocationTimeout,
		}, bridge)
	})
	group.Go(func() error { // the table's stream to relay
		return eventsource.Stream(ctx, sources.streams, sources.streamARN, &eventsource.StreamOptions{
			Latest: true, Logger: w.Log, Timeout: invocationTimeout,
		}, relay)
	})
	group.Go(func() error { // the clock to tick
		clock := time.NewTicker(tickEvery)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-clock.C:
			}
			invocation, cancel := context.WithTimeout(context.WithoutCancel(ctx), invocationTimeout)
			if err := tick(invocation); err != nil {
				w.Log.WarnContext(ctx, "tick failed, the next one goes on", "error", err)
			}
			cancel()
		}
	})
	return group.Wait()
}

// brief makes received messages visible again sooner than the queue would. The queue's own six function timeouts are
// for production; here they would be what a resumed demo waits for.
type brief struct{ *sqs.Client }

func (c brief) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	in.VisibilityTimeout = int32(visibilityTimeout / time.Second)
	return c.Client.ReceiveMessage(ctx, in, options...)
}

// sources are where the functions' events come from.
type sources struct {
	queues    *sqs.Client
	queueURL  string
	streams   *dynamodbstreams.Client
	streamARN string
}

func findSources(ctx context.Context) (*sources, error) {
	missing := func(what string, cause error) error {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: what + " cannot be found",
			Hint:    `run "make demo-aws", which creates table and queues`,
			Cause:   cause,
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, missing("the configuration of AWS", err)
	}
	bindings, err := awslane.ParseQueues(os.Getenv(awslane.QueuesVariable))
	if err != nil {
		return nil, err
	}
	table, err := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = true
	}).DescribeTable(
		ctx, &dynamodb.DescribeTableInput{TableName: aws.String(os.Getenv(awslane.TableVariable))})
	if err != nil {
		return nil, missing("the table", err)
	}
	if table.Table.LatestStreamArn == nil {
		return nil, missing("the table's stream", nil)
	}
	return &sources{
		queues: sqs.NewFromConfig(cfg), queueURL: bindings[webhooks.Queue.Name],
		streams: dynamodbstreams.NewFromConfig(cfg), streamARN: *table.Table.LatestStreamArn,
	}, nil
}
