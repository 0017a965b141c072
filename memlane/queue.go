package memlane

import (
	"container/list"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// queue holds the wakeups of one binding, first in first out, and its receptions. Guarded by the transport's lock.
type queue struct {
	name     runlane.QueueName
	blocks   [][]waitingWakeup // all full except the last, so that a growing backlog is never copied
	head     int               // index of the first wakeup in the first block
	size     int               // waiting wakeups
	spare    []waitingWakeup   // an empty block for reuse
	inFlight int               // handed to a handler and not acknowledged
	// receptions are the calls of Receive that read this queue.
	receptions []*reception
	// refused are wakeups (*delayed) that a reception handed back. They count as in flight.
	refused list.List
	// passed is the last element of refused that a reception refused. It refused everything before it too, so it gets
	// each wakeup once.
	passed map[*reception]*list.Element
}

// waitingWakeup is a wakeup with its refusals.
type waitingWakeup struct {
	lane.Wakeup

	refused *refusals // nil: none
}

const wakeupBlock = 256

func (q *queue) waiting() int { return q.size }

// push hands the wakeup to an idle receiver or appends it.
func (q *queue) push(w waitingWakeup) {
	for _, r := range q.receptions {
		if r.idle > 0 {
			r.idle--
			q.inFlight++
			r.handed <- received{q, w} // has room for each idle worker
			return
		}
	}
	last := len(q.blocks) - 1
	if last < 0 || len(q.blocks[last]) == wakeupBlock {
		if q.spare == nil {
			q.spare = make([]waitingWakeup, 0, wakeupBlock)
		}
		q.blocks, q.spare, last = append(q.blocks, q.spare), nil, last+1
	}
	q.blocks[last] = append(q.blocks[last], w)
	q.size++
}

func (q *queue) pop() (waitingWakeup, bool) {
	if q.size == 0 {
		return waitingWakeup{}, false
	}
	block := q.blocks[0]
	w := block[q.head]
	block[q.head] = waitingWakeup{}
	q.head++
	q.size--
	q.inFlight++
	if q.head == len(block) {
		q.spare, q.head = block[:0], 0
		q.blocks[0] = nil
		if q.blocks = q.blocks[1:]; len(q.blocks) == 0 {
			q.blocks = nil
		}
	}
	return w, true
}
