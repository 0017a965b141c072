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
	// until holds, by receipt handle, when the record would become visible.
	until map[string]time.Time
}

func newKeeper(t *Transport, b *binding) *keeper {
	return &keeper{transport: t, binding: b, until: map[string]time.Time{}}
}

// add is called with the time before the records were asked for, from which their visibility surely lasts.
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

// run extends what has less than two thirds of its time left, three times in that time, until ctx ends.
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
	changes := k.ending(now.Add(timeout * 2 / 3))
	for batch := range slices.Chunk(changes, maxBatch) {
		asked := time.Now()
		refused, err := k.transport.changeVisibility(ctx, k.binding, batch)
		if err != nil {
			if ctx.Err() == nil {
				k.transport.log().Warn(
					"wakeups under way may come again: their visibility was not extended",
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
		k.extended(batch, asked.Add(timeout))
		for _, handle := range refused {
			// Deleted or expired meanwhile, or twelve hours old, which is SQS's limit: asking again changes nothing.
			k.remove(Record{ReceiptHandle: handle})
		}
	}
}

// ending lists what becomes visible at or before limit.
func (k *keeper) ending(limit time.Time) []visibilityChange {
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

func (k *keeper) extended(changes []visibilityChange, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range changes {
		if _, there := k.until[c.receiptHandle]; there {
			k.until[c.receiptHandle] = until
		}
	}
}
