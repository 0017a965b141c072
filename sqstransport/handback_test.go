package sqstransport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

func TestReceive_FailedWakeup_ComesAgainAfterGrowingDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 1))
		var came []time.Duration
		last := time.Now()
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error {
			came = append(came, time.Since(last).Round(time.Second))
			last = time.Now()
			if len(came) < 9 {
				return errors.New("not now")
			}
			return nil
		}, "mail")
		time.Sleep(time.Hour)
		stop()
		s := time.Second
		equal(t, "distances", came, []time.Duration{0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s})
		equal(t, "messages left", len(client.left(mailURL)), 0)
	})
}

func TestHandBackDelay(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	noTime := &runlane.Error{Code: runlane.ErrOperationCancelled}
	for _, tc := range []struct {
		err   error
		count int
		turn  int
		want  time.Duration
	}{
		{failed, 0, 0, 10 * time.Second},
		{failed, 1, 0, 10 * time.Second},
		{failed, 2, 0, 20 * time.Second},
		{failed, 5, 0, 160 * time.Second},
		{failed, 6, 0, 5 * time.Minute},
		{failed, 1 << 40, 0, 5 * time.Minute},
		{failed, -1, 0, 10 * time.Second},
		{failed, 3, 7, 40 * time.Second},
		{noTime, 1, 1, 0}, // the ones before it used the time
		{noTime, 9, 4, 0},
		{fmt.Errorf("worker: %w", noTime), 1, 1, 0},
		{noTime, 1, 0, 10 * time.Second}, // nothing did: the next invocation may have no more
		{noTime, 9, 0, 5 * time.Minute},
	} {
		equal(t, fmt.Sprint(tc.err, tc.count), sqstransport.HandBackDelay(sqstransport.Record{ReceiveCount: tc.count, Turn: tc.turn}, tc.err), tc.want)
	}
}

func TestReceive_MalformedMessage_IsLeftForTheDeadLetterQueueAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		client := newFakeSQS()
		transport := open(t, client, &sqstransport.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		client.put(mailURL, `{"card":"4111 1111 1111 1111"}`, "")
		publish(t, transport, attempts("mail", 2))
		var calls atomic.Int64
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error { calls.Add(1); return nil }, "mail")
		time.Sleep(time.Hour)
		stop()
		equal(t, "handler calls", calls.Load(), int64(2))
		left := client.left(mailURL)
		if len(left) != 1 || left[0].receiveCount < 5 {
			t.Fatalf("left are %d messages", len(left))
		}
		text := log.String()
		equal(t, "lines about it", strings.Count(text, left[0].id), 1)
		if strings.Contains(text, "4111") || !strings.Contains(text, "validation_failed") {
			t.Errorf("log is %s", text)
		}
	})
}

// The handler of a receiver says itself why it hands a wakeup back, with the run's id: two lines would be about one event.
func TestReceive_WakeupThatTheHandlerRefuses_IsNotLoggedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		client := newFakeSQS()
		transport := open(t, client, &sqstransport.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		publish(t, transport, attempts("mail", 1))
		calls := 0
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error {
			if calls++; calls == 1 {
				return errors.New("not now")
			}
			return nil
		}, "mail")
		time.Sleep(time.Minute)
		stop()
		equal(t, "handler calls", calls, 2)
		equal(t, "log", log.String(), "")
	})
}

func TestReceive_FIFO_GroupStaysInOrderAndStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		list := attempts("orders", 8)
		for i := range list {
			list[i].GroupKey = fmt.Sprint("customer-", i%2)
		}
		publish(t, transport, list)
		var mu sync.Mutex
		var handled []string
		failed := false
		stop := receiving(t, transport, 10, func(_ context.Context, w lane.Wakeup) error {
			mu.Lock()
			defer mu.Unlock()
			if string(w.RunID) == "orders-run-2" && !failed {
				failed = true
				return errors.New("not now")
			}
			handled = append(handled, string(w.RunID))
			return nil
		}, "orders")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		mu.Lock()
		first := slices.Clone(handled)
		mu.Unlock()
		time.Sleep(time.Minute)
		stop()
		group := func(list []string, parity string) (of []string) {
			for _, id := range list {
				if strings.Contains(parity, id[len(id)-1:]) {
					of = append(of, id)
				}
			}
			return of
		}
		equal(t, "the other group, at once", group(first, "1357"), []string{"orders-run-1", "orders-run-3", "orders-run-5", "orders-run-7"})
		equal(t, "the group, before its second try", group(first, "0246"), []string{"orders-run-0"})
		equal(t, "the group, in the end", group(handled, "0246"), []string{"orders-run-0", "orders-run-2", "orders-run-4", "orders-run-6"})
		equal(t, "messages left", len(client.left(orderURL)), 0)
	})
}

func TestHandBack_QueueByARN_ChangesVisibilityInBatches(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	transport := open(t, client, nil)
	var records []sqstransport.HandedBack
	for i := range 12 {
		records = append(records, sqstransport.HandedBack{
			Record: sqstransport.Record{MessageID: fmt.Sprint(i), ReceiptHandle: fmt.Sprint("receipt-", i), ReceiveCount: i}, Err: errors.New("failed"),
		})
	}
	records[3].Turn, records[3].Err = 2, &runlane.Error{Code: runlane.ErrOperationCancelled}
	if err := transport.HandBack(t.Context(), "arn:aws:sqs:eu-west-1:123456789012:mail", records); err != nil {
		t.Fatal(err)
	}
	var timeouts []int32
	for _, in := range client.changes {
		equal(t, "queue", *in.QueueUrl, mailURL)
		for _, e := range in.Entries {
			timeouts = append(timeouts, e.VisibilityTimeout)
		}
	}
	equal(t, "requests", len(client.changes), 2)
	equal(t, "timeouts", timeouts, []int32{10, 10, 20, 0, 80, 160, 300, 300, 300, 300, 300, 300})

	for _, source := range []string{"arn:aws:sqs:eu-west-1:123456789012:other", "", "mail"} {
		if err := transport.HandBack(t.Context(), source, records); !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("error for %q is %v", source, err)
		}
	}
	client.onChange = func(*sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, bool, error) {
		return nil, true, &types.RequestThrottled{}
	}
	if err := transport.HandBack(t.Context(), mailURL, records); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("error when throttled is %v", err)
	}
}
