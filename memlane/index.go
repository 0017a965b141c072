package memlane

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// indexes order runs by when they need inspection, each index for one purpose:
//
//	groups                      every run is in exactly one of their lists
//	unpublished to dead         the latest delivery of a queued or scheduled run is in one of them
type indexes struct {
	groups    map[group]lists              // the runs of a queue and a task
	schedules map[runlane.ScheduleID]lists // those of a schedule once more; nil until there is one
	sources   map[runlane.RunID]map[*entry]struct{}

	unpublished  ordered // deliveries to publish: by when they are available, or by the end of their claim
	redeliveries ordered // published ones of queued runs: by when they count as lost
	dead         ordered // given-up ones: since when

	// undelivered are queued runs that no delivery is certain to bring to a worker: those without a delivery, from when
	// they may be taken, and those with a reservation, from its end. They need a slot, or a delivery request if their
	// queue has no limit any more.
	undelivered ordered

	untold ordered // finished runs whose end is to be told: by the end of the run
}

// place is where a run lies in one of the indexes.
type place struct {
	set *ordered // nil: nowhere
	at  embedded.Millis
}

// move puts the run somewhere else, or nowhere.
func (p *place) move(e *entry, to place) {
	if *p == to {
		return
	}
	if p.set != nil {
		p.set.remove(item{p.at, e})
	}
	if to.set != nil {
		to.set.insert(item{to.at, e})
	}
	*p = to
}

// reindex is called after every change of a run or of its deliveries.
func (env *environment) reindex(e *entry) {
	e.moveDue(e.duePlace())
	e.delivery.move(e, e.deliveryPlace())
	e.undelivered.move(e, e.undeliveredPlace())
	if len(env.limited) > 0 {
		env.reindexWants(e)
	}
}

func (e *entry) duePlace() place {
	s := &e.state
	of, known := kindOf(s.status, s.waiting)
	if !known {
		return place{} // Transition.Validate lets no other status in
	}
	p := place{set: e.shard.indexes.group(e).of(of)}
	switch {
	case s.status.Waiting():
		p.at = s.runAt
	case s.status == runlane.StatusQueued:
		p.at = e.queuedSince()
	case s.status.Owned():
		p.at = s.leaseExpiresAt
	default:
		p.at = s.finishedAt
	}
	return p
}

func (e *entry) deliveryPlace() place {
	r, ix := e.liveRow(), &e.shard.indexes
	if r == nil {
		return place{}
	}
	switch r.status {
	case lane.OutboxPending, lane.OutboxFailed:
		return place{&ix.unpublished, r.availableAt}
	case lane.OutboxClaimed:
		return place{&ix.unpublished, r.claimUntil}
	case lane.OutboxPublished:
		if e.state.status != runlane.StatusQueued || e.state.dispatchExpiresAt != embedded.Absent {
			return place{} // the scan of due waits finds a scheduled run, the end of its reservation a reserved one
		}
		return place{&ix.redeliveries, e.redeliverAt(r)}
	case lane.OutboxDeadLettered:
		return place{&ix.dead, r.since}
	default:
		return place{}
	}
}

func (e *entry) undeliveredPlace() place {
	if e.state.status != runlane.StatusQueued {
		return place{}
	}
	switch r := e.liveRow(); {
	case r == nil:
		return place{&e.shard.indexes.undelivered, e.queuedSince()}
	case e.state.dispatchExpiresAt != embedded.Absent && !r.dead():
		return place{&e.shard.indexes.undelivered, e.state.dispatchExpiresAt}
	default:
		return place{}
	}
}

// The times after which a published wakeup without a claim counts as lost, see docs/internals/decisions.md, Delivery.
const (
	firstRedelivery   = 10 * time.Minute
	longestRedelivery = 6 * time.Hour
)

// redeliverAt is 10 minutes after the first publication, 20 after the second, 40 after the third, at most 6 hours. The
// time since the first publication tells how many there were.
func (e *entry) redeliverAt(r *row) embedded.Millis {
	waited := r.since.Since(e.firstPublished)
	return r.since.Add(min(waited+firstRedelivery, longestRedelivery))
}
