package memlane

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/runlane/runlane-go/lane"
)

// later holds wakeups until they are due. One timer runs while there are any, set to the earliest. Guarded by the
// transport's lock.
type later struct {
	heap  delayedHeap
	timer *time.Timer
}

// delayed is a wakeup that enters its queue later.
type delayed struct {
	at      time.Time
	queue   *queue
	wakeup  waitingWakeup
	refused *list.Element // its element in queue.refused; nil if it was not refused
	index   int           // in the heap
}

func (t *Transport) sendLater(q *queue, w lane.Wakeup, delay time.Duration) {
	t.keep(&delayed{at: time.Now().Add(delay), queue: q, wakeup: waitingWakeup{Wakeup: w}})
}

func (t *Transport) keep(d *delayed) {
	heap.Push(&t.later.heap, d)
	if d.index == 0 {
		t.arm()
	}
}

func (t *Transport) move(d *delayed, at time.Time) {
	d.at = at
	heap.Fix(&t.later.heap, d.index)
	if d.index == 0 {
		t.arm()
	}
}

// drop removes a wakeup. A timer set to it finds nothing due.
func (t *Transport) drop(d *delayed) {
	heap.Remove(&t.later.heap, d.index)
	if len(t.later.heap) == 0 {
		t.later.timer.Stop()
	}
}

func (t *Transport) arm() {
	if t.later.timer != nil {
		t.later.timer.Stop() // if it fires anyway, it finds nothing due
	}
	t.later.timer = time.AfterFunc(time.Until(t.later.heap[0].at), t.release)
}

// release moves due wakeups into their queues. The timer's goroutine runs it.
func (t *Transport) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for len(t.later.heap) > 0 && !t.later.heap[0].at.After(now) {
		d := heap.Pop(&t.later.heap).(*delayed)
		if d.refused != nil {
			d.endRound()
		}
		d.queue.push(d.wakeup)
	}
	if len(t.later.heap) > 0 {
		t.arm()
	}
}

func (l *later) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.heap = nil
}

// delayedHeap implements container/heap, ordered by time.
type delayedHeap []*delayed

func (h delayedHeap) Len() int           { return len(h) }
func (h delayedHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h delayedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *delayedHeap) Push(x any) {
	d := x.(*delayed)
	d.index = len(*h)
	*h = append(*h, d)
}

func (h *delayedHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
