package memlane

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// indexes order runs by when they need attention:
//
//	groups                 every run is in exactly one of their lists
//	unpublished to dead    the latest delivery of a queued or scheduled run is in one of them
type indexes struct {
	groups    map[group]lists              // runs of a queue, task and priority
	schedules map[runlane.ScheduleID]lists // the same runs by schedule; nil if empty
	sources   map[runlane.RunID]map[*entry]struct{}

	unpublished  ordered // rows to publish: by availability, or by the end of their claim
	redeliveries ordered // published rows of queued runs: by when they count as lost
	dead         ordered // dead letters: by when they were given up

	// Queued runs that may never get a wakeup: without a delivery, from when they are runnable; with a reservation,
	// from its end. They need a slot, or a delivery request if their queue has no limit any more.
	undelivered ordered

	prioritized bool // groups has one with a priority

	toNotify ordered // ended runs that owe notifications: by when they ended
}

// place is a run's place in an index.
type place struct {
	set *ordered // nil: in none
	at  embedded.Millis
}

// move moves the run to another place, or to none.
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

// reindex must follow every change of a run or its deliveries.
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
	of, known := kindOf(s.Status, s.Waiting)
	if !known {
		return place{} // Transition.Validate refuses other statuses
	}
	set := e.shard.indexes.group(e).of(of)
	set.precedence = embedded.Precedence(e.created.Priority)
	return place{set, s.Due()}
}

func (e *entry) deliveryPlace() place {
	ix := &e.shard.indexes
	switch kind, at := e.outbox.Place(e.known()); kind {
	case embedded.Unpublished:
		return place{&ix.unpublished, at}
	case embedded.Published:
		return place{&ix.redeliveries, at}
	case embedded.Dead:
		return place{&ix.dead, at}
	default:
		return place{}
	}
}

func (e *entry) undeliveredPlace() place {
	if since, ok := e.outbox.Undelivered(e.known()); ok {
		return place{&e.shard.indexes.undelivered, since}
	}
	return place{}
}
