package eventsource

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
)

// Defaults and limits of [QueueOptions].
const (
	// DefaultBatchSize is also the maximum.
	DefaultBatchSize = 10
	// DefaultConcurrency is Lambda's initial concurrency.
	DefaultConcurrency = 5

	longPoll = 20 * time.Second
)

// QueueAPI is the part of the SQS client that [Queue] uses; *sqs.Client implements it.
type QueueAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(
		context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
	GetQueueAttributes(
		context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
	) (*sqs.GetQueueAttributesOutput, error)
}

// QueueHandler is the type of functions.Bridge's result.
type QueueHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// QueueOptions of [Queue]. nil means the defaults.
type QueueOptions struct {
	// BatchSize is the most messages an invocation gets. 0 means DefaultBatchSize, the maximum.
	BatchSize int
	// Concurrency is how many invocations run at once. 0 means DefaultConcurrency.
	Concurrency int
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Timeout of an invocation. 0 means DefaultTimeout.
	Timeout time.Duration
}

// Queue polls the queue and invokes handler with its messages until ctx ends. Then it waits for running invocations and
// returns nil. It deletes messages that the response does not report as failed. An error, or a failure without a known
// message ID, fails the whole batch, as in Lambda. Failures of the service are logged and retried.
//
// Options out of range are runlane.ErrConfigurationInvalid.
func Queue(ctx context.Context, client QueueAPI, url string, options *QueueOptions, handler QueueHandler) error {
	q := queue{client: client, url: url, handler: handler, size: DefaultBatchSize, timeout: DefaultTimeout}
	if options == nil {
		options = &QueueOptions{}
	}
	q.logger = loggerOr(options.Logger)
	concurrency := DefaultConcurrency
	switch {
	case options.BatchSize < 0 || options.BatchSize > DefaultBatchSize:
		return invalid(fmt.Sprintf("BatchSize is %d", options.BatchSize), "use 1 to 10, or 0 for 10")
	case options.Concurrency < 0 || options.Timeout < 0:
		return invalid("Concurrency or Timeout is negative", "use 0 for the defaults")
	}
	if options.BatchSize > 0 {
		q.size = options.BatchSize
	}
	if options.Concurrency > 0 {
		concurrency = options.Concurrency
	}
	if options.Timeout > 0 {
		q.timeout = options.Timeout
	}
	if !q.readARN(ctx) {
		return nil
	}
	var pollers sync.WaitGroup
	for range concurrency {
		pollers.Go(func() { q.poll(ctx) })
	}
	pollers.Wait()
	return nil
}

type queue struct {
	client   QueueAPI
	url, arn string
	handler  QueueHandler
	logger   *slog.Logger
	size     int
	timeout  time.Duration
}

// readARN reads the queue's ARN, which events have, until it succeeds or ctx has ended.
func (q *queue) readARN(ctx context.Context) bool {
	for failures := 1; ; failures++ {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		out, err := q.client.GetQueueAttributes(request, &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(q.url), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
		})
		cancel()
		if err == nil {
			q.arn = out.Attributes[string(types.QueueAttributeNameQueueArn)]
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		q.logger.Warn("cannot read the queue's attributes", "queue_url", q.url, "error", err)
		if !pause(ctx, failures) {
			return false
		}
	}
}

func (q *queue) poll(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		messages, err := q.receive(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			failures++
			q.logger.Warn("cannot receive messages", "queue_url", q.url, "error", err)
			pause(ctx, failures)
		case len(messages) == 0:
			failures = 0
			if time.Since(began) < time.Second { // a service that does not wait must not be polled in a tight loop
				sleep(ctx, time.Second)
			}
		default:
			failures = 0
			q.invoke(ctx, messages)
		}
	}
}

func (q *queue) receive(ctx context.Context) ([]types.Message, error) {
	request, cancel := context.WithTimeout(ctx, longPoll+requestTimeout)
	defer cancel()
	out, err := q.client.ReceiveMessage(request, &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(q.url),
		WaitTimeSeconds:             int32(longPoll / time.Second),
		MaxNumberOfMessages:         int32(q.size), // at most 10
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

func (q *queue) invoke(ctx context.Context, messages []types.Message) {
	call, cancel := invocation(ctx, q.timeout)
	defer cancel()
	response, err := q.handler(call, q.event(messages))
	if err != nil {
		q.logger.Warn(
			"the invocation failed and its messages will be redelivered",
			"queue_url",
			q.url,
			"count",
			len(messages),
			"error",
			err,
		)
		return
	}
	q.delete(ctx, succeeded(messages, response))
}

func (q *queue) event(messages []types.Message) events.SQSEvent {
	region := ""
	if parts := strings.Split(q.arn, ":"); len(parts) > 3 {
		region = parts[3]
	}
	event := events.SQSEvent{Records: make([]events.SQSMessage, len(messages))}
	for i := range messages {
		m := &messages[i]
		event.Records[i] = events.SQSMessage{
			MessageId:      aws.ToString(m.MessageId),
			ReceiptHandle:  aws.ToString(m.ReceiptHandle),
			Body:           aws.ToString(m.Body),
			Md5OfBody:      aws.ToString(m.MD5OfBody),
			Attributes:     m.Attributes,
			EventSource:    "aws:sqs",
			EventSourceARN: q.arn,
			AWSRegion:      region,
		}
	}
	return event
}

// succeeded returns the messages without reported failures, or none after a report of an unknown message.
func succeeded(messages []types.Message, response events.SQSEventResponse) []types.Message {
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	var done []types.Message
	for i := range messages {
		id := aws.ToString(messages[i].MessageId)
		if failed[id] {
			delete(failed, id)
		} else {
			done = append(done, messages[i])
		}
	}
	if len(failed) > 0 {
		return nil
	}
	return done
}

func (q *queue) delete(ctx context.Context, messages []types.Message) {
	if len(messages) == 0 {
		return
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{
			Id:            aws.String(strconv.Itoa(i)),
			ReceiptHandle: messages[i].ReceiptHandle,
		}
	}
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	out, err := q.client.DeleteMessageBatch(request, &sqs.DeleteMessageBatchInput{
		QueueUrl: aws.String(q.url),
		Entries:  entries,
	})
	if err != nil {
		q.logger.Warn(
			"done messages were not deleted and will be redelivered",
			"queue_url",
			q.url,
			"count",
			len(messages),
			"error",
			err,
		)
		return
	}
	for i := range out.Failed {
		q.logger.Warn("a done message was not deleted and will be redelivered", "queue_url", q.url,
			"provider_code", aws.ToString(out.Failed[i].Code))
	}
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
