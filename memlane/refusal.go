package memlane

import (
	"container/list"
	"slices"
	"time"

	"github.com/runlane/runlane-go/internal/embedded"
)

// A reception refuses a wakeup when its handler hands it back. The wakeup stays with its queue, in flight, and every
// reception is offered it once a round. A round ends
//
//   - when its pause is over, which begins as soon as all present receptions have refused;
//   - after MaxHandBack while a reception has not been asked, because that one may be busy for long, and a
//     refusal may have been for a passing reason.
//
// Then the wakeup waits like any other, and the next refusal begins the next round. A reception that joins has
// refused nothing, so it is offered what pauses. The transport's lock guards all of this.

// refusals tell which receptions refused a wakeup, and since how many rounds.
type refusals struct {
	by     []*reception // in this round
	rounds int          // with this one
	until  time.Time    // the end of the pause; zero while a reception has not been asked
}

// open tells whether a reception refused the wakeup in this round. r may be nil.
func (r *refusals) open() bool { return r != nil && len(r.by) > 0 }

// refuse notes that the reception's handler handed the wakeup back.
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

// offer gives a refused wakeup to an idle reception that has not refused it. Without one it stays with its queue.
func (t *Transport) offer(next received) {
	for _, r := range next.queue.receptions {
		if r.idle > 0 && !slices.Contains(next.wakeup.refused.by, r) {
			r.idle--
			r.handed <- next // has room for every idle worker
			return
		}
	}
	d := &delayed{at: t.roundEnds(next.queue, next.wakeup.refused), queue: next.queue, wakeup: next.wakeup}
	d.refused = next.queue.refused.PushBack(d)
	t.keep(d)
}

// roundEnds is the end of the round, as far as it is known now.
func (t *Transport) roundEnds(q *queue, refused *refusals) time.Time {
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

// takeRefused takes the first refused wakeup of a queue that the reception has not refused in this round.
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

// removeRefused takes a wakeup out of the list. Receptions whose last refusal it was now point to the one before it.
func (q *queue) removeRefused(e *list.Element) {
	for r, passed := range q.passed {
		if passed == e {
			q.passed[r] = e.Prev()
		}
	}
	q.refused.Remove(e)
}

// endRound moves a refused wakeup whose round is over to those that wait.
func (d *delayed) endRound() {
	d.queue.removeRefused(d.refused)
	d.queue.inFlight--
	d.wakeup.refused.by, d.wakeup.refused.until = nil, time.Time{}
}

// pauseWithout lets wakeups pause that only a reception that has left the queue had not refused.
func (t *Transport) pauseWithout(q *queue, left *reception) {
	delete(q.passed, left)
	for e := q.refused.Front(); e != nil; e = e.Next() {
		d := e.Value.(*delayed)
		if at := t.roundEnds(q, d.wakeup.refused); at.Before(d.at) {
			t.move(d, at)
		}
	}
}
