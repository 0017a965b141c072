package sqstransport_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// local is a transport on a queue of local AWS, made for the test.
type local struct {
	*sqstransport.Transport

	client *sqs.Client
	queue  infra.Queue
	name   runlane.QueueName
}

func openLocal(t *testing.T, fifo bool) *local {
	t.Helper()
	client := awstest.SQS(t)
	l := &local{client: client, queue: awstest.Queue(t, client, fifo), name: "mail"}
	transport, err := sqstransport.New(client, map[runlane.QueueName]string{l.name: l.queue.URL},
		&sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Start(t.Context(), lane.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	l.Transport = transport
	return l
}

func TestLocal_MalformedMessage_ReachesTheDeadLetterQueueUnharmed(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	const text = `{"not":"ours"}`
	if _, err := l.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &l.queue.URL, MessageBody: aws.String(text)}); err != nil {
		t.Fatal(err)
	}
	// Receipts by hand: the delays between them are Receive's own and would take minutes.
	for range infra.MaxReceiveCount {
		m := l.receiveOne(t, l.queue.URL, 1)
		_, err := sqstransport.ParseMessage(*m.Body)
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Fatalf("error is %v", err)
		}
		err = l.HandBack(t.Context(), l.queue.ARN, []sqstransport.HandedBack{{
			Record: sqstransport.Record{MessageID: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Turn: 1},
			Err:    &runlane.Error{Code: runlane.ErrOperationCancelled}, // at once
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The service moves a message when it would be received once more.
	if _, err := l.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &l.queue.URL, WaitTimeSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	equal(t, "dead letter", *l.receiveOne(t, l.queue.DeadLetterURL, 10).Body, text)
}

func (l *local) receiveOne(t *testing.T, url string, wait int32) types.Message {
	t.Helper()
	out, err := l.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: wait})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Messages) != 1 {
		t.Fatalf("%d messages in %s", len(out.Messages), url)
	}
	return out.Messages[0]
}

func TestLocal_MissingQueue_IsNamedWhenStartingAndKeepsItsWakeups(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	transport, err := sqstransport.New(l.client, map[runlane.QueueName]string{"mail": l.queue.URL + "-missing"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Start(t.Context(), lane.StartOptions{}); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error when starting is %v", err)
	}
	equal(t, "outcomes", summary(publish(t, transport, attempts("mail", 1))), []string{"transport_unavailable"})
}
