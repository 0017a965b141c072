package memlane

import (
	"container/list"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// queue holds the wakeups of one binding and its receptions. Wakeups without a concurrency key are first in first out.
// Concurrency keys take turns with them and with each other, so that none holds up another with its backlog. Guarded by
// the transport's lock.
type queue struct {
	name     runlane.QueueName
	blocks   [][]waitingWakeup // all full except the last, so that a growing backlog is never copied
	head     int               // index of the first wakeup in the first block
	size     int               // waiting wakeups without a key
	spare    []waitingWakeup   // an empty block for reuse
	keys     map[string]*keyed // those with waiting wakeups
	turns    list.List         // the same (*keyed), the next one first
	taken    int               // turns of keys since one without
	behind   int               // waiting wakeups of all keys
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

	key string // its concurrency key; "" also for delayed wakeups

	refused *refusals // nil: none
}

const wakeupBlock = 256

// keyed holds the waiting wakeups of one concurrency key.
type keyed struct {
	key     string
	wakeups []waitingWakeup // those before head are taken
	head    int
	turn    *list.Element
}

func (q *queue) waiting() int { return q.size + q.behind }

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
	if w.key != "" {
		q.pushKeyed(w)
		return
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

func (q *queue) pushKeyed(w waitingWakeup) {
	k := q.keys[w.key]
	if k == nil {
		k = &keyed{key: w.key}
		k.turn = q.turns.PushBack(k)
		if q.keys == nil {
			q.keys = map[string]*keyed{}
		}
		q.keys[w.key] = k
	}
	k.wakeups = append(k.wakeups, w)
	q.behind++
}

// popKeyed takes a wakeup of the key that has its turn.
func (q *queue) popKeyed() waitingWakeup {
	k := q.turns.Front().Value.(*keyed)
	w := k.wakeups[k.head]
	k.wakeups[k.head] = waitingWakeup{}
	k.head++
	switch {
	case k.head == len(k.wakeups):
		q.turns.Remove(k.turn)
		delete(q.keys, k.key)
	case k.head > len(k.wakeups)/2: // half of the memory, at least, is in use
		k.wakeups, k.head = slices.Clone(k.wakeups[k.head:]), 0
		fallthrough
	default:
		q.turns.MoveToBack(k.turn)
	}
	q.behind--
	q.inFlight++
	return w
}

func (q *queue) pop() (waitingWakeup, bool) {
	switch {
	case q.behind > 0 && (q.size == 0 || q.taken < q.turns.Len()):
		q.taken++
		return q.popKeyed(), true
	case q.size == 0:
		return waitingWakeup{}, false
	}
	q.taken = 0
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
