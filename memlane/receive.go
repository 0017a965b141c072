package memlane

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// reception is one call of Receive. Guarded by the transport's lock.
type reception struct {
	queues []*queue
	turn   int           // the queue to read first: a busy queue must not starve the others
	idle   int           // workers waiting on handed
	handed chan received // has room for each worker
}

// received is a wakeup in flight and its queue.
type received struct {
	queue  *queue
	wakeup waitingWakeup
}

// Receive calls handle from concurrency goroutines until ctx ends or the transport is closed. A refused wakeup is
// offered to the queue's other calls of Receive, which may handle other tasks. When all have refused it, it is
// redelivered after [TransportOptions].HandBack, or at once to a new call of Receive.
func (t *Transport) Receive(
	ctx context.Context, queues []runlane.QueueName, concurrency int, handle func(context.Context, lane.Wakeup) error,
) error {
	r, err := t.join(queues, concurrency)
	if err != nil {
		return err
	}
	defer t.leave(r)
	attempt := context.WithoutCancel(ctx)
	var workers sync.WaitGroup
	for range concurrency { // each ends with ctx or the transport, after its handler returned
		workers.Go(func() {
			for {
				next, ok := t.next(ctx, r)
				if !ok {
					return
				}
				t.settle(r, next, handle(attempt, next.copy()))
			}
		})
	}
	workers.Wait()
	return nil
}

func (t *Transport) join(names []runlane.QueueName, concurrency int) (*reception, error) {
	if err := embedded.JudgeReceive(names, concurrency); err != nil {
		return nil, err
	}
	for _, name := range names {
		if !t.bound(name) {
			return nil, noBinding(name)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &reception{handed: make(chan received, concurrency)}
	for _, name := range names {
		if q := t.queue(name); !slices.Contains(r.queues, q) {
			r.queues = append(r.queues, q)
			q.receptions = append(q.receptions, r)
		}
	}
	return r, nil
}

// leave removes the reception from its queues. Its workers have ended, so handed is empty.
func (t *Transport) leave(r *reception) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range r.queues {
		q.receptions = slices.DeleteFunc(q.receptions, func(other *reception) bool { return other == r })
		if !t.isClosed() {
			t.startPauses(q, r)
		}
	}
}

// next waits for a wakeup; ok is false when the worker must end.
func (t *Transport) next(ctx context.Context, r *reception) (next received, ok bool) {
	t.mu.Lock()
	if ctx.Err() != nil || t.isClosed() {
		t.mu.Unlock()
		return received{}, false
	}
	for n := range r.queues {
		q := r.queues[(r.turn+n)%len(r.queues)]
		next, ok := t.takeRefused(q, r) // older than the others
		if !ok {
			next.queue = q
			next.wakeup, ok = q.pop()
		}
		if ok {
			r.turn = (r.turn + n + 1) % len(r.queues)
			t.mu.Unlock()
			return next, true
		}
	}
	r.idle++
	t.mu.Unlock()

	select {
	case next = <-r.handed:
		return next, true
	case <-ctx.Done():
	case <-t.closed:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case next = <-r.handed: // handed over at this moment: do not lose it
		t.putBack(next)
	default:
		r.idle--
	}
	return received{}, false
}

// putBack returns an undelivered wakeup to its queue.
func (t *Transport) putBack(next received) {
	if next.wakeup.refused.open() && !t.isClosed() {
		t.offer(next)
		return
	}
	next.queue.inFlight--
	next.queue.push(next.wakeup)
}

// settle acknowledges a wakeup, or offers a refused one to others.
func (t *Transport) settle(r *reception, done received, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || t.isClosed() {
		done.queue.inFlight--
		return
	}
	done.refuse(r)
	t.offer(done)
}

// copy returns a wakeup that the handler may modify.
func (r received) copy() lane.Wakeup {
	w := r.wakeup.Wakeup
	w.TraceCarrier = maps.Clone(w.TraceCarrier)
	return w
}
