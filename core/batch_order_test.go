package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// ordering is a transport with ordered queues, and what was published to it.
type ordering struct {
	lane.Transport

	mu   sync.Mutex
	sent []runlane.RunID
}

func (o *ordering) Unwrap() lane.Transport { return o.Transport }

func (o *ordering) Capabilities() lane.TransportCapabilities {
	c := o.Transport.Capabilities()
	c.MessageGrouping, c.OrderedDelivery = true, true
	return c
}

func (*ordering) Ordered(runlane.QueueName) bool { return true }

func (o *ordering) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range c.Attempts {
		o.sent = append(o.sent, c.Attempts[i].RunID)
	}
	return o.Transport.PublishWakeups(ctx, c)
}

// The wakeups of a batch are published in the order of its items, where the transport keeps an order.
func TestTriggerBatch_OrderedLane_KeepsTheOrderOfItems(t *testing.T) {
	t.Parallel()
	transport := &ordering{Transport: memlane.NewTransport(nil)}
	rt := openOn(t, memlane.NewStorage(nil), transport)
	task := runlane.NewTask[payload]("any", nil)
	var items []core.BatchItem
	var want []runlane.RunID
	for n := range 300 {
		id := runlane.RunID(fmt.Sprintf("run-%04d", 300-n))
		items = append(items, core.BatchItem{Call: task.With(payload{}), Options: &runlane.TriggerOptions{RunID: id}})
		want = append(want, id)
	}
	results, err := rt.TriggerBatch(t.Context(), items)
	if err != nil || results[299].Err != nil {
		t.Fatal(err, results[299].Err)
	}
	if !slices.Equal(transport.sent, want) {
		t.Errorf("published in another order: %v", transport.sent)
	}
}
