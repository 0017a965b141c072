package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const batchParallel = 8

// BatchItem is one run of a batch.
type BatchItem struct {
	Call    runlane.Call
	Options *runlane.TriggerOptions // nil means none
}

// BatchResult belongs to the item at the same index. Exactly one field is set.
type BatchResult struct {
	Result *runlane.TriggerResult
	Err    error
}

// TriggerBatch makes many runs durable and returns one result for each item, in order. Each run is a separate commit,
// as with [Runtime.Trigger], so a bad item fails alone. Wakeups are published together, as many in a request as the
// transport takes. Several runs are made at once, except on a lane with ordered queues, where items with the same key
// keep their order, and except if an item has Debounce or Throttle: the last or the first of its key is in the order of
// the items.
//
// An error ends the batch: ctx has ended (runlane.ErrOperationCancelled), or the storage is unreachable or overloaded
// (runlane.ErrOverloaded: wait for Error.RetryAfter). The results
// have the runs made so far, and this error for items that were not tried: trigger those again.
func (rt *Runtime) TriggerBatch(ctx context.Context, items []BatchItem) ([]BatchResult, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	b := batch{rt: rt, items: items, results: make([]BatchResult, len(items))}
	// A few long-lived goroutines: one for each item would grow its stack anew.
	parallel := batchParallel
	if rt.lane.Transport.Capabilities().OrderedDelivery || slices.ContainsFunc(items, inWindow) {
		parallel = 1
	}
	for range min(parallel, len(items)) {
		b.triggering.Go(func() { b.run(ctx) })
	}
	b.triggering.Wait()
	b.publish(ctx, 1)
	return b.results, b.stopped
}

func inWindow(item BatchItem) bool {
	o := item.Options
	return o != nil && (o.Debounce != (runlane.Debounce{}) || o.Throttle != (runlane.Throttle{}))
}

type batch struct {
	rt         *Runtime
	items      []BatchItem
	results    []BatchResult // each element is written by one goroutine
	next       atomic.Int64
	triggering sync.WaitGroup

	mu      sync.Mutex
	stopped error // why the batch ended; nil while it goes on
	outbox  []lane.OutboxMessage
}

// run triggers the remaining items. If an item panics or ends the goroutine, another goroutine continues with the next.
func (b *batch) run(ctx context.Context) {
	current := -1
	defer func() {
		value := recover()
		if current < 0 {
			return
		}
		message := "triggering this item ended its goroutine (runtime.Goexit)"
		if value != nil {
			message = "triggering this item panicked"
		}
		b.results[current] = BatchResult{Err: &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: message,
			Hint:    "look at the key functions and at the encoding of the payload's type",
		}}
		b.triggering.Go(func() { b.run(ctx) })
	}()
	for i := b.next.Add(1) - 1; i < int64(len(b.items)); i = b.next.Add(1) - 1 {
		current = int(i)
		b.trigger(ctx, current, &b.items[i])
		current = -1
	}
}

func (b *batch) trigger(ctx context.Context, i int, item *BatchItem) {
	if err := b.stop(ctx); err != nil {
		b.results[i].Err = err
		return
	}
	options := item.Options
	if options == nil {
		options = &noOptions
	}
	p := plans.Get().(*plan)
	defer p.done()
	p.options = options
	if err := b.rt.prepare(p, item.Call); err != nil {
		b.results[i].Err = err
		return
	}
	if err := b.rt.admit(ctx, 1, Labels{TaskID: p.task.ID, Queue: p.queue.Name}); err != nil {
		b.results[i].Err = err
		b.end(err)
		return
	}
	ctx, t := b.rt.traceCreation(ctx, p)
	result, commit, err := b.rt.resolve(ctx, p, b.rt.create)
	t.done(createdEnd(result, err))
	b.results[i] = BatchResult{Result: result, Err: err}
	switch {
	case errors.Is(err, runlane.ErrStorageUnavailable):
		b.end(err)
	case commit == nil:
	case len(commit.Outbox) == 0 || options.Deferred || p.availableAt.After(p.at):
		b.rt.announce(ctx, p, commit)
	default:
		b.mu.Lock()
		b.outbox = append(b.outbox, commit.Outbox...)
		b.mu.Unlock()
		b.publish(ctx, publishBatch)
	}
}

// end ends the batch, for the first reason of all.
func (b *batch) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == nil {
		b.stopped = err
	}
}

// stop returns why the batch ended, nil while it goes on.
func (b *batch) stop(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == nil && ctx.Err() != nil {
		b.stopped = cancelled(ctx, "")
	}
	return b.stopped
}

// publish sends the wakeups of runs committed so far, if there are enough.
func (b *batch) publish(ctx context.Context, enough int) {
	b.mu.Lock()
	if len(b.outbox) < enough {
		b.mu.Unlock()
		return
	}
	outbox := b.outbox
	b.outbox = nil
	b.mu.Unlock()
	if result := b.rt.publishCommitted(ctx, outbox); result.Err != nil {
		b.rt.logger.LogAttrs(
			ctx,
			slog.LevelWarn,
			"wakeups of a batch were not published; the outbox keeps them",
			errorAttrs(result.Err)...,
		)
	}
}
