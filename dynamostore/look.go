package dynamostore

import (
	"cmp"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// stage is who has something to do about a run.
type stage int

const (
	nobody       stage = iota
	finalizing         // its cancellation is to be finished
	delivering         // it needs a fresh delivery request, or its scheduled row is to be published
	publishing         // its outbox row is to be published
	redelivering       // its published wakeup is to be sent again
	dispatching        // it needs a slot of its bounded queue
)

// sight is what a look at a run finds: somebody's work since a moment, or nothing yet and the marker at which there will be.
type sight struct {
	stage  stage
	since  millis
	outbox string // the row to publish
	unsent bool   // redelivering: its row was not published, and can be until its reservation is over
	marker marker // of nobody's work
}

// concerns reports that the stage has something to do. The due row of a scheduled run is found by delivering and by publishing.
func (s sight) concerns(wanted stage) bool {
	return s.stage == wanted || wanted == publishing && s.outbox != ""
}

// look judges a run and its latest delivery row at an instant, in the order of the layout: cancellation, lease, waiting time,
// reservation, outbox row. row is nil when the run has none. bounded says that the queue has a limit now, as far as the reader
// knows; a reservation is judged by the run alone.
func look(r *runItem, row *delivery, at millis, bounded bool) sight {
	recovering := delivering
	if bounded {
		recovering = dispatching
	}
	switch r.status() {
	case runlane.StatusCancellationRequested:
		return dueOr(finalizing, r.LeaseUntil, at, marker{leased, r.LeaseUntil})
	case runlane.StatusRunning:
		return dueOr(recovering, r.LeaseUntil, at, marker{leased, r.LeaseUntil})
	case runlane.StatusRetrying, runlane.StatusReleased:
		return dueOr(recovering, r.RunAt, at, marker{waiting, r.RunAt})
	case runlane.StatusScheduled:
		if bounded || row == nil || row.status() == lane.OutboxPublished {
			return dueOr(recovering, r.RunAt, at, marker{waiting, r.RunAt})
		}
		seen := lookAtRow(r, row, at)
		if seen.stage == publishing {
			seen.stage = delivering
		} else if seen.marker == (marker{unpublished, r.RunAt}) {
			seen.marker.kind = waiting
		}
		return seen
	case runlane.StatusQueued:
		return lookAtQueued(r, row, at, bounded)
	default:
		return sight{}
	}
}

func lookAtQueued(r *runItem, row *delivery, at millis, bounded bool) sight {
	reserved := r.DispatchExpiresAt != 0 && r.DispatchExpiresAt > at
	if since, _ := r.dispatchable(); since <= at && !reserved && (bounded || r.DispatchExpiresAt != 0 || row == nil) {
		if bounded {
			return sight{stage: dispatching, since: since}
		}
		unsent := row != nil && row.status() != lane.OutboxPublished && row.status() != lane.OutboxDeadLettered
		return sight{stage: redelivering, since: since, unsent: unsent} // its queue has no limit any more
	}
	seen := lookAtRow(r, row, at)
	if reserved && (seen.stage == nobody && seen.marker.at > r.DispatchExpiresAt || seen.stage == redelivering || row == nil) {
		return sight{marker: marker{leased, r.DispatchExpiresAt}}
	}
	return seen
}

func dueOr(s stage, due, at millis, otherwise marker) sight {
	if due <= at {
		return sight{stage: s, since: due}
	}
	return sight{marker: otherwise}
}

func lookAtRow(r *runItem, row *delivery, at millis) sight {
	if row == nil { // created without a delivery, or superseded while it waits for a slot: the next request is still to come
		since := cmp.Or(r.RunAt, r.UpdatedAt)
		return dueOr(redelivering, since, at, marker{deliverable, since})
	}
	switch row.status() {
	case lane.OutboxDeadLettered:
		return sight{marker: marker{deadLetter, row.DeadAt}}
	case lane.OutboxPublished:
		next := row.redeliverAt()
		return dueOr(redelivering, next, at, marker{parked, next})
	default:
		seen := dueOr(publishing, row.due(), at, marker{unpublished, row.due()})
		if seen.stage == publishing {
			seen.outbox = r.deliveryID()
		}
		return seen
	}
}

// shortWait reports a wait of at most 15 minutes: its delayed wakeup was sent when it began.
func shortWait(r *runItem) bool {
	const longestNativeDelay = 15 * time.Minute
	return r.RunAt-r.UpdatedAt <= millis(longestNativeDelay/time.Millisecond)
}

// patient reports that the reader may leave the row to those who are surely at work on it.
func patient(r *runItem, at millis, p lane.Patience) bool {
	m := r.marker()
	switch m.kind {
	case deliverable:
		return m.at > at-millis(p.Queued/time.Millisecond)
	case waiting:
		return shortWait(r) && !slices.Contains(p.Undelayed, runlane.QueueName(r.Queue)) && m.at > at-millis(p.ShortWait/time.Millisecond)
	default:
		return false
	}
}

// handedOver reports a scheduled run whose wakeup was handed to the transport so shortly ago that it is surely on its way.
func handedOver(r *runItem, row *delivery, at millis, p lane.Patience) bool {
	return r.status() == runlane.StatusScheduled && row != nil && row.status() == lane.OutboxPublished &&
		row.Published > at-millis(p.Queued/time.Millisecond)
}

// strayPatience is how long after its end a reservation is over for good, whatever the clocks say.
const strayPatience = time.Minute

// nextMarker is the marker that a scan leaves. A row at which nobody has anything to do gets that of the moment when somebody will. One in
// o that has nothing to publish any more gets one that its stage reads: a scheduled run whose row was published after a look at its
// claim, or a queued one whose reservation ended after its queue lost its limit. The other way, one that waited for a slot until its queue
// lost its limit, and was never handed over, moves to where that is looked for. That there is no limit is not known when rows are
// claimed: such a run is moved once its reservation is over by every clock, and dispatch reads p as well. A wakeup that is due again
// may be put off for hours while its queue is behind: its run is parked, out of the way of the stages that are the first to read q. The
// one that publishes leaves that to them, because it does not know of limits. A run whose row was never published stays: a look ahead
// finds its reservation over while there is still time to publish it.
func nextMarker(r *runItem, seen sight, wanted stage, at millis) (to marker, moves bool) {
	switch {
	case r == nil:
		return marker{}, false
	case seen.stage == nobody:
		return seen.marker, true
	case seen.stage == redelivering && (wanted == finalizing || wanted == delivering) && r.marker().kind == deliverable && !seen.unsent:
		return marker{parked, seen.since}, true
	case r.marker().kind == slotless && seen.stage == publishing:
		return marker{unpublished, seen.since}, true
	case r.marker().kind != unpublished || seen.outbox != "":
		return marker{}, false
	case seen.stage == delivering:
		return marker{waiting, min(seen.since, r.marker().at)}, true
	case seen.stage == redelivering && at-r.DispatchExpiresAt >= millis(strayPatience/time.Millisecond):
		return marker{parked, min(seen.since, r.marker().at)}, true
	default:
		return marker{}, false
	}
}
