package sqstransport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
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

// collect receives until enough says so, or fails the test after a while.
func (l *local) collect(t *testing.T, enough func([]lane.Wakeup) bool, handle func(lane.Wakeup) error) []lane.Wakeup {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	var mu sync.Mutex
	var came []lane.Wakeup
	err := l.Receive(ctx, []runlane.QueueName{l.name}, 10, func(_ context.Context, w lane.Wakeup) error {
		err := handle(w)
		mu.Lock()
		defer mu.Unlock()
		came = append(came, w)
		if enough(came) {
			cancel()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !enough(came) {
		t.Fatalf("only %d wakeups came", len(came))
	}
	return came
}

func count(n int) func([]lane.Wakeup) bool {
	return func(came []lane.Wakeup) bool { return len(came) >= n }
}

func acknowledge(lane.Wakeup) error { return nil }

func TestLocal_PublishedWakeups_AreReceivedOnceAndGone(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	list := attempts(l.name, 25)
	list[7].TraceCarrier = map[string]string{"traceparent": "00-ü-\uFFFE"} // SQS refuses the second character
	for i, o := range publish(t, l.Transport, list) {
		if o.Type != lane.Published {
			t.Fatalf("outcome %d: %+v", i, o)
		}
	}
	came := l.collect(t, count(25), acknowledge)
	slices.SortFunc(came, func(a, b lane.Wakeup) int { return runNumber(a) - runNumber(b) })
	var want []lane.Wakeup
	for i := range list {
		want = append(want, list[i].Wakeup)
	}
	equal(t, "wakeups", came, want)
	visible, inFlight, err := l.Depth(t.Context(), l.name)
	equal(t, "depth afterwards", []any{visible, inFlight, err}, []any{0, 0, error(nil)})
}

func runNumber(w lane.Wakeup) int {
	var n int
	_, _ = fmt.Sscanf(string(w.RunID), "mail-run-%d", &n)
	return n
}

func TestLocal_FailedWakeup_ComesAgainAfterTenSeconds(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	publish(t, l.Transport, attempts(l.name, 1))
	var first, second time.Time
	l.collect(t, count(2), func(lane.Wakeup) error {
		if first.IsZero() {
			first = time.Now()
			return errors.New("not now")
		}
		second = time.Now()
		return nil
	})
	if d := second.Sub(first); d < 9*time.Second {
		t.Errorf("it came again after %s", d)
	}
}

func TestLocal_DelayedWakeup_IsNotEarly(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	began := time.Now()
	outcomes, err := l.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: wakeup(l.name, "mail-run-1"), Delay: 2500 * time.Millisecond}})
	if err != nil || outcomes[0].Type != lane.Published {
		t.Fatalf("%v %+v", err, outcomes)
	}
	l.collect(t, count(1), acknowledge)
	if d := time.Since(began); d < 2500*time.Millisecond {
		t.Errorf("it came after %s", d)
	}
}

func TestLocal_FIFO_OrderWithinGroupsAndOneDeliveryAnOutboxID(t *testing.T) {
	t.Parallel()
	l := openLocal(t, true)
	list := attempts(l.name, 12)
	for i := range list {
		list[i].GroupKey = "customer-" + strconv.Itoa(i%3)
	}
	publish(t, l.Transport, list)
	publish(t, l.Transport, list[:3]) // published again after an unknown outcome
	came := l.collect(t, count(12), acknowledge)
	byGroup := map[int][]int{}
	for _, w := range came {
		n := runNumber(w)
		byGroup[n%3] = append(byGroup[n%3], n)
	}
	equal(t, "order", byGroup, map[int][]int{0: {0, 3, 6, 9}, 1: {1, 4, 7, 10}, 2: {2, 5, 8, 11}})
	visible, inFlight, err := l.Depth(t.Context(), l.name)
	equal(t, "depth afterwards", []any{visible, inFlight, err}, []any{0, 0, error(nil)})
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

func TestLocal_UnreachableEndpoint_IsTransportUnavailable(t *testing.T) {
	t.Parallel()
	l := openLocal(t, false)
	client := sqs.New(l.client.Options(), func(o *sqs.Options) {
		o.BaseEndpoint = aws.String("http://127.0.0.1:1")
		o.RetryMaxAttempts = 1
		o.Retryer = aws.NopRetryer{}
	})
	transport, err := sqstransport.New(client, map[runlane.QueueName]string{"mail": l.queue.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Start(t.Context(), lane.StartOptions{}); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("error when starting is %v", err)
	}
	equal(t, "outcomes", summary(publish(t, transport, attempts("mail", 1))), []string{"transport_unavailable"})
}
