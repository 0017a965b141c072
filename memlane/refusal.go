package memlane

import (
	"slices"
	"time"
)

// refusals are what receptions made of a wakeup: it is offered to each once before it rests. The transport's lock guards them.
type refusals struct {
	by    []*reception // since it came last
	times int          // how often it was refused by all
}

// refuse notes that a reception handed the wakeup back.
func (r *received) refuse(by *reception) {
	if r.wakeup.refused == nil {
		r.wakeup.refused = &refusals{}
	}
	r.wakeup.refused.by = append(r.wakeup.refused.by, by)
}

// again is how long the wakeup rests, now that all have refused it.
func (r *refusals) again(first time.Duration) time.Duration {
	rest := first
	for n := 1; n < r.times && rest < MaxHandBack; n++ {
		rest = min(2*rest, MaxHandBack)
	}
	return rest
}

// pass gives a refused wakeup, which stays in flight, to a reception of its queue that has not seen it, to an idle one if there is one;
// without any it rests.
func (t *Transport) pass(next received) {
	refused := next.wakeup.refused
	var other *reception
	for _, r := range next.queue.receptions {
		if slices.Contains(refused.by, r) {
			continue
		}
		if r.idle > 0 {
			r.idle--
			r.handed <- next // has room for every idle worker
			return
		}
		if other == nil {
			other = r
		}
	}
	if other != nil {
		other.offered = append(other.offered, next)
		return
	}
	refused.by = nil
	refused.times++
	t.keepRefused(next)
}
