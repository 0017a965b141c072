package memlane

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
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
	of, known := kindOf(s.Status, s.Waiting)
	if !known {
		return place{} // Transition.Validate lets no other status in
	}
	return place{e.shard.indexes.group(e).of(of), s.Due()}
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
