package sqstransport_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go/sqstransport"
)

// fakeSQS is a small SQS in memory at the SDK seam: visibility, receipt counts, delays, FIFO groups. A hook, when set, answers
// first; returning handled=false leaves the call to the model. Time is the test's, so it belongs into a synctest bubble wherever
// visibility or long polls matter.
type fakeSQS struct {
	mu       sync.Mutex
	queues   map[string][]*fakeMessage
	arrived  chan struct{}
	receipts int

	onSend       func(*sqs.SendMessageBatchInput) (out *sqs.SendMessageBatchOutput, handled bool, err error)
	onReceive    func(*sqs.ReceiveMessageInput) (handled bool, err error)
	onDelete     func(*sqs.DeleteMessageBatchInput) (out *sqs.DeleteMessageBatchOutput, handled bool, err error)
	onChange     func(*sqs.ChangeMessageVisibilityBatchInput) (out *sqs.ChangeMessageVisibilityBatchOutput, handled bool, err error)
	onAttributes func(*sqs.GetQueueAttributesInput) (map[string]string, error)

	sends    []*sqs.SendMessageBatchInput
	receives []*sqs.ReceiveMessageInput
	deletes  []*sqs.DeleteMessageBatchInput
	changes  []*sqs.ChangeMessageVisibilityBatchInput
}

type fakeMessage struct {
	id, body, group, receipt string
	visibleAt                time.Time
	receiveCount             int
}

var _ sqstransport.API = (*fakeSQS)(nil)

func newFakeSQS() *fakeSQS {
	return &fakeSQS{queues: map[string][]*fakeMessage{}, arrived: make(chan struct{})}
}

// put adds a message with any body.
func (f *fakeSQS) put(url, body, group string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(url, body, group, 0)
}

func (f *fakeSQS) add(url, body, group string, delay time.Duration) {
	f.receipts++
	f.queues[url] = append(f.queues[url], &fakeMessage{
		id: fmt.Sprintf("message-%d", f.receipts), body: body, group: group, visibleAt: time.Now().Add(delay),
	})
	close(f.arrived)
	f.arrived = make(chan struct{})
}

// left are the messages that were not deleted.
func (f *fakeSQS) left(url string) []fakeMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []fakeMessage
	for _, m := range f.queues[url] {
		list = append(list, *m)
	}
	return list
}

// visibleIn lists for how long each message that is left stays invisible.
func (f *fakeSQS) visibleIn(url string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []time.Duration
	for _, m := range f.queues[url] {
		list = append(list, max(0, time.Until(m.visibleAt)))
	}
	return list
}

func (f *fakeSQS) counts() (receives, deletes, changes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.receives), len(f.deletes), len(f.changes)
}

func (f *fakeSQS) SendMessageBatch(
	ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sends = append(f.sends, in)
	if f.onSend != nil {
		if out, handled, err := f.onSend(in); handled {
			return out, err
		}
	}
	out := &sqs.SendMessageBatchOutput{}
	for i := range in.Entries {
		e := &in.Entries[i]
		f.add(aws.ToString(in.QueueUrl), aws.ToString(e.MessageBody), aws.ToString(e.MessageGroupId), time.Duration(e.DelaySeconds)*time.Second)
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (f *fakeSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.receives = append(f.receives, in)
	hook := f.onReceive
	f.mu.Unlock()
	if hook != nil {
		if handled, err := hook(in); handled {
			return &sqs.ReceiveMessageOutput{}, err
		}
	}
	deadline := time.NewTimer(time.Duration(in.WaitTimeSeconds) * time.Second)
	defer deadline.Stop()
	for {
		f.mu.Lock()
		messages := f.take(in)
		next, arrived := f.nextVisible(aws.ToString(in.QueueUrl)), f.arrived
		f.mu.Unlock()
		if len(messages) > 0 || in.WaitTimeSeconds == 0 {
			return &sqs.ReceiveMessageOutput{Messages: messages}, nil
		}
		again := time.NewTimer(next)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		case <-deadline.C:
			again.Stop()
			return &sqs.ReceiveMessageOutput{}, nil
		case <-arrived:
		case <-again.C:
		}
		again.Stop()
	}
}

func (f *fakeSQS) take(in *sqs.ReceiveMessageInput) []types.Message {
	now, locked := time.Now(), map[string]bool{}
	var messages []types.Message
	for _, m := range f.queues[aws.ToString(in.QueueUrl)] {
		if m.visibleAt.After(now) {
			locked[m.group] = m.group != ""
			continue
		}
		if locked[m.group] || len(messages) == int(in.MaxNumberOfMessages) {
			continue
		}
		f.receipts++
		m.receipt, m.receiveCount = fmt.Sprintf("receipt-%d", f.receipts), m.receiveCount+1
		m.visibleAt = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		messages = append(messages, types.Message{
			MessageId: aws.String(m.id), ReceiptHandle: aws.String(m.receipt), Body: aws.String(m.body),
			Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receiveCount), "MessageGroupId": m.group},
		})
	}
	return messages
}

func (f *fakeSQS) nextVisible(url string) time.Duration {
	next := time.Hour
	for _, m := range f.queues[url] {
		if d := time.Until(m.visibleAt); d > 0 {
			next = min(next, d)
		}
	}
	return next
}

func (f *fakeSQS) DeleteMessageBatch(
	_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deletes = append(f.deletes, in)
	if f.onDelete != nil {
		if out, handled, err := f.onDelete(in); handled {
			return out, err
		}
	}
	url := aws.ToString(in.QueueUrl)
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		kept := f.queues[url][:0:0]
		for _, m := range f.queues[url] {
			if m.receipt != aws.ToString(e.ReceiptHandle) {
				kept = append(kept, m)
			}
		}
		f.queues[url] = kept
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
	}
	close(f.arrived) // a group may go on
	f.arrived = make(chan struct{})
	return out, nil
}

func (f *fakeSQS) ChangeMessageVisibilityBatch(
	_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, in)
	if f.onChange != nil {
		if out, handled, err := f.onChange(in); handled {
			return out, err
		}
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		for _, m := range f.queues[aws.ToString(in.QueueUrl)] {
			if m.receipt == aws.ToString(e.ReceiptHandle) {
				m.visibleAt = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
			}
		}
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	close(f.arrived)
	f.arrived = make(chan struct{})
	return out, nil
}

func (f *fakeSQS) GetQueueAttributes(
	_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onAttributes != nil {
		attributes, err := f.onAttributes(in)
		return &sqs.GetQueueAttributesOutput{Attributes: attributes}, err
	}
	visible, inFlight := 0, 0
	for _, m := range f.queues[aws.ToString(in.QueueUrl)] {
		if m.visibleAt.After(time.Now()) {
			inFlight++
		} else {
			visible++
		}
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
	}}, nil
}
