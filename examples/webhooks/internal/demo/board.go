package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
)

// board knows how far the demo is: which runs there are, which may have ended, and the outcomes of those that have. It
// is safe for concurrent use.
type board struct {
	mu       sync.Mutex
	open     map[runlane.RunID]string // runs that have not ended, with their delivery ids
	maybe    map[runlane.RunID]bool   // runs that may have ended since they were looked at
	ended    []ended
	attempts int       // begun in this process
	changed  time.Time // when anything happened last
}

// ended is what stays of a run.
type ended struct {
	deliveryID        string
	status            runlane.Status
	attempts, retries int
	took              time.Duration
	here              bool // it had not ended when this process triggered it
}

func newBoard() *board {
	return &board{open: map[runlane.RunID]string{}, maybe: map[runlane.RunID]bool{}, changed: time.Now()}
}

// triggered adds a run, or notes the end of one that a demo before this had executed.
func (b *board) triggered(deliveryID string, result *runlane.TriggerResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = time.Now()
	if result.Run.Status.Terminal() {
		b.ended = append(b.ended, endOf(result.Run, deliveryID, false))
		return
	}
	b.open[result.Run.ID] = deliveryID
}

// watch is middleware: it counts attempts, and notes runs whose attempt leaves nothing more to do. Whether they have
// ended is for the storage to say, which learns of the outcome only afterwards.
func (b *board) watch(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
	b.mu.Lock()
	b.attempts++
	b.changed = time.Now()
	b.mu.Unlock()
	err := next(ctx)
	_, permanent := errors.AsType[*runlane.PermanentError](err)
	if err == nil || permanent || a.Run.Counters.Failures+1 >= webhooks.MaxAttempts {
		b.mu.Lock()
		b.maybe[a.Run.ID] = true
		b.mu.Unlock()
	}
	return err
}

// toInspect returns the runs that may have ended, or all that are open.
func (b *board) toInspect(all bool) []runlane.RunID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []runlane.RunID
	for id := range b.open {
		if all || b.maybe[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// seen notes what a look has shown.
func (b *board) seen(run *runlane.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	deliveryID, open := b.open[run.ID]
	if !open || !run.Status.Terminal() {
		return
	}
	delete(b.open, run.ID)
	delete(b.maybe, run.ID)
	b.ended = append(b.ended, endOf(run, deliveryID, true))
	b.changed = time.Now()
}

func endOf(run *runlane.Run, deliveryID string, here bool) ended {
	return ended{
		deliveryID: deliveryID, status: run.Status, attempts: run.Counters.Attempts, retries: run.Counters.Retries,
		took: run.FinishedAt.Sub(run.CreatedAt), here: here,
	}
}

// figures is the board at one moment.
type figures struct {
	runs, open, attempts int
	ended                []ended
	quiet                time.Duration // since anything happened
}

func (b *board) figures() figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	return figures{
		runs:     len(b.open) + len(b.ended),
		open:     len(b.open),
		attempts: b.attempts,
		ended:    slices.Clone(b.ended),
		quiet:    time.Since(b.changed),
	}
}
