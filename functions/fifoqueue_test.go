package functions_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// fifoQueue is one FIFO queue of SQS at the SDK's seam, as AWS documents it: a group with a message in flight gives out no other, a
// message that was received too often moves to the dead letters when it would be received once more, and a batch may hold many messages
// of one group. It waits in the test's time, so it belongs into a synctest bubble.
type fifoQueue struct {
	visibility time.Duration
	most       int // receipts

	mu       sync.Mutex
	number   int
	messages []*fifoMessage
	dead     []string // bodies
	receipts int      // the most of any message
}

type fifoMessage struct {
	id, body, group, handle string
	visibleAt               time.Time
	receipts                int
}

func (q *fifoQueue) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		q.number++
		q.messages = append(q.messages, &fifoMessage{
			id: fmt.Sprint("message-", q.number), body: aws.ToString(e.MessageBody), group: aws.ToString(e.MessageGroupId),
		})
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (q *fifoQueue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	for end := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second); ; {
		if got := q.take(int(in.MaxNumberOfMessages)); len(got) > 0 || !time.Now().Before(end) {
			return &sqs.ReceiveMessageOutput{Messages: got}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (q *fifoQueue) take(n int) []types.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, locked := time.Now(), map[string]bool{}
	for _, m := range q.messages {
		locked[m.group] = locked[m.group] || m.visibleAt.After(now)
	}
	var got []types.Message
	kept := q.messages[:0]
	for _, m := range q.messages {
		switch {
		case locked[m.group] || len(got) == n:
		case m.receipts >= q.most:
			q.dead = append(q.dead, m.body)
			continue
		default:
			q.number++
			m.receipts++
			m.handle, m.visibleAt = fmt.Sprint("receipt-", q.number), now.Add(q.visibility)
			q.receipts = max(q.receipts, m.receipts)
			got = append(got, types.Message{
				MessageId: aws.String(m.id), ReceiptHandle: aws.String(m.handle), Body: aws.String(m.body),
				Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receipts), "MessageGroupId": m.group},
			})
		}
		kept = append(kept, m)
	}
	q.messages = kept
	return got
}

func (q *fifoQueue) DeleteMessageBatch(
	_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		for i, m := range q.messages {
			if m.handle == aws.ToString(e.ReceiptHandle) {
				q.messages = append(q.messages[:i:i], q.messages[i+1:]...)
				break
			}
		}
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (q *fifoQueue) ChangeMessageVisibilityBatch(
	_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		for _, m := range q.messages {
			if m.handle == aws.ToString(e.ReceiptHandle) {
				m.visibleAt = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			}
		}
	}
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

func (q *fifoQueue) GetQueueAttributes(
	context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": fifoARN}}, nil
}

// empty reports that no message is left.
func (q *fifoQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages) == 0
}
