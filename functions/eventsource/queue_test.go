package eventsource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions/eventsource"
)

const (
	queueURL = "http://127.0.0.1:4566/queue/eu-west-1/000000000000/jobs"
	queueARN = "arn:aws:sqs:eu-west-1:000000000000:jobs"
)

// fakeQueue hands each message out once; what is not deleted is what would come again.
type fakeQueue struct {
	mu       sync.Mutex
	waiting  []types.Message
	deleted  []string
	polls    int
	faults   int // polls that fail first
	hasty    bool
	unknown  int // requests for attributes that fail first
	unsettle bool
}

func (q *fakeQueue) put(ids ...string) {
	for _, id := range ids {
		q.waiting = append(q.waiting, types.Message{
			MessageId: aws.String(id), ReceiptHandle: aws.String("receipt-" + id), Body: aws.String("body of " + id),
			Attributes: map[string]string{"ApproximateReceiveCount": "1"},
		})
	}
}

func (q *fakeQueue) GetQueueAttributes(
	context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	if q.unknown > 0 {
		q.unknown--
		return nil, errScripted
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": queueARN}}, nil
}

func (q *fakeQueue) ReceiveMessage(
	ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polls++
	if q.faults > 0 {
		q.faults--
		return nil, errScripted
	}
	n := min(int(in.MaxNumberOfMessages), len(q.waiting))
	out := &sqs.ReceiveMessageOutput{Messages: slices.Clone(q.waiting[:n])}
	q.waiting = q.waiting[n:]
	if n == 0 && !q.hasty {
		q.mu.Unlock()
		defer q.mu.Lock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
		}
	}
	return out, nil
}

func (q *fakeQueue) DeleteMessageBatch(
	_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unsettle {
		return nil, errScripted
	}
	for _, e := range in.Entries {
		q.deleted = append(q.deleted, strings.TrimPrefix(*e.ReceiptHandle, "receipt-"))
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func mapping(t *testing.T, q *fakeQueue, options *eventsource.QueueOptions, d time.Duration, handler eventsource.QueueHandler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if options == nil {
		options = &eventsource.QueueOptions{}
	}
	options.Logger = quiet
	if err := eventsource.Queue(ctx, q, queueURL, options, handler); err != nil {
		t.Error(err)
	}
	slices.Sort(q.deleted)
}

func report(ids ...string) events.SQSEventResponse {
	var r events.SQSEventResponse
	for _, id := range ids {
		r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return r
}

func TestQueue_Messages_ArriveAsLambdaSendsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		q.put("a")
		mapping(t, q, &eventsource.QueueOptions{Timeout: 90 * time.Second}, time.Second, func(
			ctx context.Context, e events.SQSEvent,
		) (events.SQSEventResponse, error) {
			equal(t, "record", e.Records[0], events.SQSMessage{
				MessageId: "a", ReceiptHandle: "receipt-a", Body: "body of a", Attributes: map[string]string{"ApproximateReceiveCount": "1"},
				EventSource: "aws:sqs", EventSourceARN: queueARN, AWSRegion: "eu-west-1",
			})
			deadline, _ := ctx.Deadline()
			equal(t, "time left", time.Until(deadline), 90*time.Second)
			return report(), nil
		})
		equal(t, "deleted", q.deleted, []string{"a"})
	})
}

func TestQueue_Answers_DecideWhatIsDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		response events.SQSEventResponse
		err      error
		want     []string
	}{
		"all done":         {report(), nil, []string{"a", "b", "c"}},
		"one failed":       {report("b"), nil, []string{"a", "c"}},
		"all failed":       {report("a", "b", "c"), nil, nil},
		"an error":         {report("b"), errScripted, nil},
		"an unknown id":    {report("b", "x"), nil, nil},
		"an id left empty": {report(""), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &fakeQueue{}
				q.put("a", "b", "c")
				mapping(t, q, nil, time.Second, func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return tc.response, tc.err })
				equal(t, "deleted", q.deleted, tc.want)
			})
		})
	}
}

func TestQueue_BatchSizeAndConcurrency_AreBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		for i := range 40 {
			q.put(fmt.Sprint(i))
		}
		running, most := 0, 0
		var mu sync.Mutex
		began := time.Now()
		mapping(t, q, &eventsource.QueueOptions{BatchSize: 4, Concurrency: 2}, 10*time.Second, func(
			_ context.Context, e events.SQSEvent,
		) (events.SQSEventResponse, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			if len(e.Records) > 4 {
				t.Errorf("%d records", len(e.Records))
			}
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return report(), nil
		})
		equal(t, "invocations at once", most, 2)
		equal(t, "deleted", len(q.deleted), 40)
		equal(t, "end", time.Since(began), 10*time.Second)
	})
}

func TestQueue_End_WaitsForItsInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		q.put("a")
		began := time.Now()
		mapping(t, q, nil, time.Second, func(ctx context.Context, _ events.SQSEvent) (events.SQSEventResponse, error) {
			time.Sleep(30 * time.Second)
			return report(), ctx.Err()
		})
		equal(t, "end", time.Since(began), 30*time.Second)
		equal(t, "deleted", q.deleted, []string{"a"})
	})
}

func TestQueue_ServiceFails_IsOutlastedWithoutSpinning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{unknown: 3, faults: 6}
		q.put("a")
		mapping(t, q, &eventsource.QueueOptions{Concurrency: 1}, 2*time.Minute, func(
			context.Context, events.SQSEvent,
		) (events.SQSEventResponse, error) {
			return report(), nil
		})
		equal(t, "deleted", q.deleted, []string{"a"})
		if q.polls > 6+1+7 {
			t.Errorf("%d polls", q.polls)
		}
	})
}

func TestQueue_ServiceSaysEmptyAtOnce_IsNotAskedInATightLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{hasty: true}
		mapping(t, q, &eventsource.QueueOptions{Concurrency: 1}, time.Minute, nil)
		if q.polls > 61 {
			t.Errorf("%d polls in a minute", q.polls)
		}
	})
}

func TestQueue_DeleteFails_IsNoReasonToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{unsettle: true}
		q.put("a")
		calls := 0
		mapping(t, q, &eventsource.QueueOptions{Concurrency: 1}, time.Minute, func(
			context.Context, events.SQSEvent,
		) (events.SQSEventResponse, error) {
			calls++
			return report(), nil
		})
		equal(t, "calls", calls, 1)
	})
}

func TestQueue_OptionsOutOfRange_AreConfigurationInvalid(t *testing.T) {
	t.Parallel()
	for _, o := range []eventsource.QueueOptions{{BatchSize: 11}, {BatchSize: -1}, {Concurrency: -1}, {Timeout: -1}} {
		if err := eventsource.Queue(t.Context(), &fakeQueue{}, queueURL, &o, nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("error for %+v is %v", o, err)
		}
	}
}
