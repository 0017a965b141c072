package memlane

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// queue is the wakeups of one binding, first in first out, and who waits for them. The transport's lock guards it.
type queue struct {
	name     runlane.QueueName
	wakeups  []lane.Wakeup
	head     int // wakeups[:head] are gone
	inFlight int // handed to a handler and not acknowledged
	// receptions are the calls of Receive that read this queue.
	receptions []*reception
}

func (q *queue) waiting() int { return len(q.wakeups) - q.head }

// push hands the wakeup to an idle receiver, else lets it wait.
func (q *queue) push(w lane.Wakeup) {
	for _, r := range q.receptions {
		if r.idle > 0 {
			r.idle--
			q.inFlight++
			r.handed <- received{q, w} // has room for every idle worker
			return
		}
	}
	if q.head == len(q.wakeups) {
		q.wakeups, q.head = q.wakeups[:0], 0
	} else if q.head > 64 && q.head > len(q.wakeups)/2 {
		n := copy(q.wakeups, q.wakeups[q.head:])
		clear(q.wakeups[n:])
		q.wakeups, q.head = q.wakeups[:n], 0
	}
	q.wakeups = append(q.wakeups, w)
}

// pop takes the wakeup that waited longest.
func (q *queue) pop() (lane.Wakeup, bool) {
	if q.waiting() == 0 {
		return lane.Wakeup{}, false
	}
	w := q.wakeups[q.head]
	q.wakeups[q.head] = lane.Wakeup{}
	q.head++
	q.inFlight++
	return w, true
}
