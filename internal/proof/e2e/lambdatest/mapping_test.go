package lambdatest_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

var quiet = slog.New(slog.DiscardHandler)

// background runs something until the test ends, before its functions do, or until stop is called.
func (i *installation) background(run func(context.Context) error) (stop func()) {
	i.t.Cleanup(i.mappings.Stop)
	return i.mappings.Go(run)
}

// mapQueue invokes the bridge with what is in the queue.
func (i *installation) mapQueue(bridge *lambdatest.Function, options eventsource.QueueOptions) (stop func()) {
	options.Logger = quiet
	i.t.Cleanup(i.mappings.Stop)
	return i.mappings.Queue(i.sqs, i.queue.URL, &options, lambdatest.Handler[events.SQSEvent, events.SQSEventResponse](bridge))
}

// mapStream invokes the relay with pending rows.
func (i *installation) mapStream(relay *lambdatest.Function) {
	i.t.Cleanup(i.mappings.Stop)
	i.mappings.Stream(awstest.LocalStackDynamoDB(i.t), awstest.Streams(i.t), i.table, nil,
		lambdatest.Handler[events.DynamoDBEvent, events.DynamoDBEventResponse](relay))
}

// tickEvery invokes the tick more often than the template does: what it leaves to others for a minute it leaves anyway.
func (i *installation) tickEvery(tick *lambdatest.Function, d time.Duration) {
	invoke := lambdatest.Handler[map[string]string, any](tick)
	i.background(func(ctx context.Context) error {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			if _, err := invoke(ctx, map[string]string{"detail-type": "Scheduled Event"}); err != nil {
				return fmt.Errorf("tick: %w", err)
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
