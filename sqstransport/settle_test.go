package sqstransport_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func TestReceive_AcknowledgedWakeups_AreDeletedInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 47))
		var mu sync.Mutex
		handled := map[runlane.RunID]int{}
		stop := receiving(t, transport, 10, func(_ context.Context, w lane.Wakeup) error {
			mu.Lock()
			defer mu.Unlock()
			handled[w.RunID]++
			return nil
		}, "mail", "mail") // a queue named twice is read once
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		equal(t, "runs handled", len(handled), 47)
		for id, n := range handled {
			equal(t, string(id), n, 1)
		}
		equal(t, "messages left", len(client.left(mailURL)), 0)
		if _, deletes, _ := client.counts(); deletes > 8 {
			t.Errorf("%d delete requests for 47 wakeups", deletes)
		}
	})
}

func TestReceive_FIFO_DeletesDoNotLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		list := attempts("orders", 35) // one group: each batch waits until the one before it is deleted
		for i := range list {
			list[i].GroupKey = "one"
		}
		publish(t, transport, list)
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error { return nil }, "orders")
		time.Sleep(time.Millisecond)
		equal(t, "messages left", len(client.left(orderURL)), 0)
		stop()
	})
}

func TestReceive_DeleteFailsForAnEntry_IsRepeatedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		requests := 0
		client.onDelete = func(in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, bool, error) {
			requests++
			return &sqs.DeleteMessageBatchOutput{Failed: []types.BatchResultErrorEntry{{Id: in.Entries[0].Id, Code: aws.String("InternalError")}}},
				requests == 1, nil
		}
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 1))
		stop := receiving(t, transport, 1, func(context.Context, lane.Wakeup) error { return nil }, "mail")
		time.Sleep(time.Second)
		stop()
		equal(t, "requests", requests, 2)
		equal(t, "messages left", len(client.left(mailURL)), 0)
	})
}
