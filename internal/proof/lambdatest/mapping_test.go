package lambdatest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/lambdaruntime"
)

// handler is a function as its event source mapping sees it.
func handler[Event, Response any](f *lambdaruntime.Function) func(context.Context, Event) (Response, error) {
	return func(ctx context.Context, event Event) (response Response, err error) {
		answer, err := f.InvokeJSON(context.WithoutCancel(ctx), event) // Lambda's own deadline ends it
		if err != nil {
			return response, err
		}
		if answer.Failure != "" {
			return response, fmt.Errorf("%s: %s", answer.Failure, answer.Payload)
		}
		return response, json.Unmarshal(answer.Payload, &response)
	}
}

// background runs something until the test ends, or until stop is called.
func (i *installation) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			i.t.Error(err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	i.t.Cleanup(stop)
	return stop
}

var quiet = slog.New(slog.DiscardHandler)

// mapQueue invokes the bridge with what is in the queue.
func (i *installation) mapQueue(bridge *lambdaruntime.Function, options eventsource.QueueOptions) (stop func()) {
	options.Logger = quiet
	return i.background(func(ctx context.Context) error {
		return eventsource.Queue(ctx, i.sqs, i.queue.URL, &options, handler[events.SQSEvent, events.SQSEventResponse](bridge))
	})
}

// mapStream invokes the relay with pending rows.
func (i *installation) mapStream(relay *lambdaruntime.Function) {
	i.t.Helper()
	described, err := awstest.LocalStackDynamoDB(i.t).DescribeTable(i.t.Context(), &dynamodb.DescribeTableInput{TableName: &i.table})
	if err != nil {
		i.t.Fatal(err)
	}
	arn := aws.ToString(described.Table.LatestStreamArn)
	i.background(func(ctx context.Context) error {
		return eventsource.Stream(ctx, awstest.Streams(i.t), arn, nil, handler[events.DynamoDBEvent, events.DynamoDBEventResponse](relay))
	})
}

// tickEvery invokes the tick more often than the template does: what it leaves to others for a minute it leaves anyway.
func (i *installation) tickEvery(tick *lambdaruntime.Function, d time.Duration) {
	i.background(func(ctx context.Context) error {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			answer, err := tick.Invoke(context.WithoutCancel(ctx), []byte(`{"detail-type":"Scheduled Event"}`))
			if err != nil {
				return err
			}
			if answer.Failure != "" {
				return fmt.Errorf("tick: %s: %s", answer.Failure, answer.Payload)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// receive takes messages from the queue until there are so many, as events have them.
func (i *installation) receive(n int) events.SQSEvent {
	i.t.Helper()
	var event events.SQSEvent
	until(i.t, fmt.Sprint(n, " messages in the queue"), func() bool {
		out, err := i.sqs.ReceiveMessage(i.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &i.queue.URL, MaxNumberOfMessages: int32(min(n-len(event.Records), 10)), WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			i.t.Fatal(err)
		}
		for _, m := range out.Messages {
			event.Records = append(event.Records, events.SQSMessage{
				MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
				EventSource: "aws:sqs", EventSourceARN: i.queue.ARN, AWSRegion: "us-east-1",
			})
		}
		return len(event.Records) == n
	})
	return event
}

// send puts a message into the queue that is none of the product's.
func (i *installation) send(body string) {
	i.t.Helper()
	if _, err := i.sqs.SendMessage(i.t.Context(), &sqs.SendMessageInput{QueueUrl: &i.queue.URL, MessageBody: &body}); err != nil {
		i.t.Fatal(err)
	}
}
