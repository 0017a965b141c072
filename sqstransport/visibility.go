package sqstransport

import (
	"context"
	"slices"
	"sync"
	"time"
)

// keeper keeps the records of one queue invisible while their handlers run.
type keeper struct {
	transport *Transport
	binding   *binding

	mu sync.Mutex
	// until is when each record would become visible, by receipt handle.
	until map[string]time.Time
}

func newKeeper(t *Transport, b *binding) *keeper {
	return &keeper{transport: t, binding: b, until: map[string]time.Time{}}
}

// add starts at asked, the time before the receive request: the visibility lasts at least from there.
func (k *keeper) add(records []Record, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range records {
		k.until[r.ReceiptHandle] = asked.Add(k.transport.visibility)
	}
}

func (k *keeper) remove(r Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.until, r.ReceiptHandle)
}

// run extends records with less than two thirds of their time left, three times in that time, until ctx ends.
func (k *keeper) run(ctx context.Context) {
	ticks := time.NewTicker(k.transport.visibility / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			k.extend(ctx, now)
		}
	}
}

func (k *keeper) extend(ctx context.Context, now time.Time) {
	timeout := k.transport.visibility
	changes := k.expiring(now.Add(timeout * 2 / 3))
	for batch := range slices.Chunk(changes, maxBatch) {
		asked := time.Now()
		refused, err := k.transport.changeVisibility(ctx, k.binding, batch)
		if err != nil {
			if ctx.Err() == nil {
				k.transport.log().Warn(
					"wakeups in progress may be redelivered: their visibility was not extended",
					"queue",
					k.binding.name,
					"count",
					len(batch),
					"error",
					err.Error(),
				)
			}
			continue // the next tick comes before their time is over
		}
		k.recordExtended(batch, asked.Add(timeout))
		for _, handle := range refused {
			// Deleted, expired, or at the SQS limit of twelve hours: another try cannot succeed.
			k.remove(Record{ReceiptHandle: handle})
		}
	}
}

func (k *keeper) expiring(limit time.Time) []visibilityChange {
	k.mu.Lock()
	defer k.mu.Unlock()
	var changes []visibilityChange
	for handle, until := range k.until {
		if !until.After(limit) {
			changes = append(changes, visibilityChange{receiptHandle: handle, timeout: k.transport.visibility})
		}
	}
	return changes
}

func (k *keeper) recordExtended(changes []visibilityChange, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range changes {
		if _, there := k.until[c.receiptHandle]; there {
			k.until[c.receiptHandle] = until
		}
	}
}
