package formats_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqstransport"
)

// queueURLs bind the application's queues. Only the last part is looked at.
var queueURLs = map[runlane.QueueName]string{
	"default": "http://localhost/000000000000/default", "narrow": "http://localhost/000000000000/narrow",
	"ordered": "http://localhost/000000000000/ordered.fifo",
}

// mailbox is SQS as far as sending goes: it keeps what was sent, and refuses what it is told to.
type mailbox struct {
	now func() time.Time

	mu       sync.Mutex
	sent     []message
	refusing map[runlane.RunID]refusal
}

var _ sqstransport.API = (*mailbox)(nil)

type refusal int

const (
	accepted    refusal = iota
	refusedOnce         // for a reason that may pass
	refusedEver         // for what it is
	outage              // the request fails
)

func newMailbox(now func() time.Time) *mailbox {
	return &mailbox{now: now, refusing: map[runlane.RunID]refusal{}}
}

func (m *mailbox) refuse(id runlane.RunID, r refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusing[id] = r
}

// SendMessageBatch implements sqstransport.API.
func (m *mailbox) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &sqs.SendMessageBatchOutput{}
	for i := range in.Entries {
		e := &in.Entries[i]
		wakeup, err := sqstransport.ParseMessage(aws.ToString(e.MessageBody))
		if err != nil {
			return nil, err
		}
		switch m.refusing[wakeup.RunID] {
		case refusedOnce:
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("NotToday"), SenderFault: true})
		case refusedEver:
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InvalidMessageContents"), SenderFault: true})
		case outage:
			return nil, errors.New("no route to host")
		default:
			url := aws.ToString(in.QueueUrl)
			name, _ := strings.CutSuffix(url[strings.LastIndexByte(url, '/')+1:], ".fifo")
			m.sent = append(m.sent, message{
				At: m.now(), Queue: runlane.QueueName(name), Delay: e.DelaySeconds, Body: aws.ToString(e.MessageBody),
				Group: aws.ToString(e.MessageGroupId), Dedup: aws.ToString(e.MessageDeduplicationId),
			})
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		}
	}
	return out, nil
}

// all are the messages that were sent, in an order that does not depend on which request came first.
func (m *mailbox) all() []message {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.sent)
	slices.SortFunc(list, func(a, b message) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Body, b.Body)) })
	return list
}

// arrived takes out what is visible by now.
func (m *mailbox) arrived() (list []message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sent = slices.DeleteFunc(m.sent, func(sent message) bool {
		visible := !sent.At.Add(time.Duration(sent.Delay) * time.Second).After(now)
		if visible {
			list = append(list, sent)
		}
		return visible
	})
	return list
}

// put adds messages of a recording.
func (m *mailbox) put(list []message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, list...)
}

// ReceiveMessage implements sqstransport.API; no program receives here.
func (m *mailbox) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return &sqs.ReceiveMessageOutput{}, nil
}

// DeleteMessageBatch implements sqstransport.API.
func (m *mailbox) DeleteMessageBatch(
	context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options),
) (*sqs.DeleteMessageBatchOutput, error) {
	return &sqs.DeleteMessageBatchOutput{}, nil
}

// ChangeMessageVisibilityBatch implements sqstransport.API.
func (m *mailbox) ChangeMessageVisibilityBatch(
	context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options),
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// GetQueueAttributes implements sqstransport.API: every queue is there and empty.
func (m *mailbox) GetQueueAttributes(
	context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		string(types.QueueAttributeNameQueueArn):                              "arn:aws:sqs:us-east-1:000000000000:any",
		string(types.QueueAttributeNameApproximateNumberOfMessages):           "0",
		string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible): "0",
	}}, nil
}
