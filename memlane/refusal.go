package memlane

import (
	"container/list"
	"slices"
	"time"

	"github.com/runlane/runlane-go/internal/embedded"
)

// A reception refuses a wakeup when its handler hands it back. The wakeup stays in its queue, in flight, and each
// reception is offered it once per round. A round ends
//
//   - when its pause ends, which starts once all present receptions have refused;
//   - after MaxHandBack while a reception has not been asked: it may be busy for long, and an earlier refusal may have
//     had a transient reason.
//
// Then the wakeup waits like any other, and the next refusal starts the next round. A new reception has refused
// nothing, so it is offered pausing wakeups. Guarded by the transport's lock.

// refusals records which receptions refused a wakeup.
type refusals struct {
	by     []*reception // in this round
	rounds int          // including this one
	until  time.Time    // end of the pause; zero until all receptions have refused
}

// open reports whether a reception refused the wakeup in this round. r may be nil.
func (r *refusals) open() bool { return r != nil && len(r.by) > 0 }

func (r *received) refuse(by *reception) {
	if r.wakeup.refused == nil {
		r.wakeup.refused = &refusals{}
	}
	refused := r.wakeup.refused
	if !refused.open() {
		refused.rounds++
	}
	refused.by = append(refused.by, by)
}

// offer hands a refused wakeup to an idle reception that has not refused it, or keeps it in the queue.
func (t *Transport) offer(next received) {
	for _, r := range next.queue.receptions {
		if r.idle > 0 && !slices.Contains(next.wakeup.refused.by, r) {
			r.idle--
			r.handed <- next // has room for each idle worker
			return
		}
	}
	d := &delayed{at: t.roundEnd(next.queue, next.wakeup.refused), queue: next.queue, wakeup: next.wakeup}
	d.refused = next.queue.refused.PushBack(d)
	t.keep(d)
}

func (t *Transport) roundEnd(q *queue, refused *refusals) time.Time {
	now := time.Now()
	if refused.until.IsZero() {
		for _, r := range q.receptions {
			if !slices.Contains(refused.by, r) {
				return now.Add(max(MaxHandBack, t.handBack))
			}
		}
		refused.until = now.Add(embedded.HandBackPause(t.handBack, MaxHandBack, int64(refused.rounds-1)))
	}
	return refused.until
}

// takeRefused takes the queue's first refused wakeup that the reception has not refused in this round.
func (t *Transport) takeRefused(q *queue, r *reception) (received, bool) {
	if q.refused.Len() == 0 {
		return received{}, false
	}
	e := q.refused.Front()
	if passed := q.passed[r]; passed != nil {
		e = passed.Next()
	}
	for ; e != nil; e = e.Next() {
		d := e.Value.(*delayed)
		if !slices.Contains(d.wakeup.refused.by, r) {
			t.drop(d)
			q.removeRefused(e)
			return received{q, d.wakeup}, true
		}
		if q.passed == nil {
			q.passed = map[*reception]*list.Element{}
		}
		q.passed[r] = e
	}
	return received{}, false
}

// removeRefused removes a wakeup from the list and moves passed elements back.
func (q *queue) removeRefused(e *list.Element) {
	for r, passed := range q.passed {
		if passed == e {
			q.passed[r] = e.Prev()
		}
	}
	q.refused.Remove(e)
}

// endRound moves a refused wakeup to the waiting ones after its round.
func (d *delayed) endRound() {
	d.queue.removeRefused(d.refused)
	d.queue.inFlight--
	d.wakeup.refused.by, d.wakeup.refused.until = nil, time.Time{}
}

// startPauses starts the pauses that waited only for a reception that has left the queue.
func (t *Transport) startPauses(q *queue, left *reception) {
	delete(q.passed, left)
	for e := q.refused.Front(); e != nil; e = e.Next() {
		d := e.Value.(*delayed)
		if at := t.roundEnd(q, d.wakeup.refused); at.Before(d.at) {
			t.move(d, at)
		}
	}
}
