package rows

import (
	"cmp"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

type Stage int

const (
	NoStage      Stage = iota
	Finalizing         // finish its cancellation
	Delivering         // request a fresh delivery, or publish a scheduled run's row
	Publishing         // publish its outbox row
	Redelivering       // send its published wakeup again
	Dispatching        // give it a slot of its bounded queue
	Notifying          // notify the run that called it, or the runs it called
)

// ScanKinds are the markers to scan for each stage. Expired leases may be in q and w, where a claim left the marker.
// Slotless runs are deliverable once their queue has no limit.
var ScanKinds = map[Stage][]MarkerKind{
	Finalizing:   {Deliverable, Waiting, Leased},
	Delivering:   {Deliverable, Waiting, Leased, Slotless},
	Publishing:   {Unpublished, Deliverable, Waiting},
	Notifying:    {Ended},
	Redelivering: {Parked, Deliverable, Leased, Slotless}, // Leased: reservations made while the queue had a limit
}

// Finding is a stage with work since Since, or for NoStage the marker for the time of the next work.
type Finding struct {
	Stage  Stage
	Since  Millis
	Outbox string // the row to publish
	unsent bool   // for Redelivering: its row can still be published until its reservation ends
	Marker Marker // for NoStage
}

// Concerns reports whether the stage has work. Delivering and Publishing both find the due row of a scheduled run.
func (s Finding) Concerns(wanted Stage) bool {
	return s.Stage == wanted || wanted == Publishing && s.Outbox != ""
}

// Classify returns what a run needs at an instant, by the last table of "Marker table" in docs/internals/layout.md. row
// is its latest delivery row, or nil. bounded is whether its queue has a limit now; reservations do not depend on it.
func Classify(r *Run, row *Delivery, at Millis, bounded bool) Finding {
	recovering := Delivering
	if bounded {
		recovering = Dispatching
	}
	switch status := r.State(); {
	case r.NotificationPending():
		return Finding{Stage: Notifying, Since: r.FinishedAt}
	case status == runlane.StatusCancellationRequested:
		return dueOr(Finalizing, r.LeaseUntil, at, Marker{Leased, r.LeaseUntil})
	case status == runlane.StatusRunning:
		return dueOr(recovering, r.LeaseUntil, at, Marker{Leased, r.LeaseUntil})
	case status == runlane.StatusScheduled:
		moved := row != nil && row.due() < r.RunAt && row.State() == lane.OutboxPending // later triggers put it off
		if bounded || row == nil || row.State() == lane.OutboxPublished || moved && r.RunAt > at {
			return dueOr(recovering, r.RunAt, at, Marker{Waiting, r.RunAt})
		}
		seen := classifyRow(r, row, at)
		if seen.Stage == Publishing {
			seen.Stage = Delivering
		} else if seen.Marker == (Marker{Unpublished, r.RunAt}) {
			seen.Marker.Kind = Waiting
		}
		return seen
	case status == runlane.StatusQueued:
		return classifyQueued(r, row, at, bounded)
	case status.Waiting(): // after an attempt; nothing is published before it is due
		return dueOr(recovering, r.RunAt, at, Marker{Waiting, r.RunAt})
	default:
		return Finding{}
	}
}

func classifyQueued(r *Run, row *Delivery, at Millis, bounded bool) Finding {
	reserved := r.DispatchExpiresAt != 0 && r.DispatchExpiresAt > at
	if since, _ := r.DispatchableAt(); since <= at && !reserved && (bounded || r.DispatchExpiresAt != 0 || row == nil) {
		if bounded {
			return Finding{Stage: Dispatching, Since: since}
		}
		unsent := row != nil && row.State() != lane.OutboxPublished && row.State() != lane.OutboxDeadLettered
		return Finding{Stage: Redelivering, Since: since, unsent: unsent} // its queue lost its limit
	}
	seen := classifyRow(r, row, at)
	if reserved &&
		(seen.Stage == NoStage && seen.Marker.At > r.DispatchExpiresAt || seen.Stage == Redelivering || row == nil) {
		return Finding{Marker: Marker{Leased, r.DispatchExpiresAt}}
	}
	return seen
}

func dueOr(s Stage, due, at Millis, otherwise Marker) Finding {
	if due <= at {
		return Finding{Stage: s, Since: due}
	}
	return Finding{Marker: otherwise}
}

func classifyRow(r *Run, row *Delivery, at Millis) Finding {
	if row == nil { // created without a delivery, or superseded while waiting for a slot
		since := cmp.Or(r.RunAt, r.UpdatedAt)
		return dueOr(Redelivering, since, at, Marker{Deliverable, since})
	}
	switch row.State() {
	case lane.OutboxDeadLettered:
		return Finding{Marker: Marker{DeadLetter, row.DeadAt}}
	case lane.OutboxPublished:
		next := row.RedeliverAt()
		return dueOr(Redelivering, next, at, Marker{Parked, next})
	default:
		seen := dueOr(Publishing, row.due(), at, Marker{Unpublished, row.due()})
		if seen.Stage == Publishing {
			seen.Outbox = r.DeliveryID()
		}
		return seen
	}
}

// shortWait reports a wait of at most 15 minutes that only time ends. Its delayed wakeup was sent when it began.
func shortWait(r *Run) bool {
	const longestNativeDelay = 15 * time.Minute
	return r.Waiting().Timed() && r.RunAt-r.UpdatedAt <= Millis(longestNativeDelay/time.Millisecond)
}

// Patient reports that the marker is young: other processes are still handling the run.
func Patient(r *Run, at Millis, p lane.Patience) bool {
	m := r.Marker()
	switch m.Kind {
	case Deliverable, Ended:
		return m.At > at-Millis(p.Queued/time.Millisecond)
	case Waiting:
		return shortWait(r) && !slices.Contains(p.Undelayed, runlane.QueueName(r.Queue)) &&
			m.At > at-Millis(p.ShortWait/time.Millisecond)
	default:
		return false
	}
}

// HandedOver reports a scheduled run with a wakeup so recently published that it is still on its way.
func HandedOver(r *Run, row *Delivery, at Millis, p lane.Patience) bool {
	return r.State() == runlane.StatusScheduled && row != nil && row.State() == lane.OutboxPublished &&
		row.Published > at-Millis(p.Queued/time.Millisecond)
}

// strayPatience is how long ago a reservation must have ended to be over by every clock.
const strayPatience = time.Minute

// NextMarker returns the marker with which a scan for a stage replaces the run's; moves is false if it stays.
//
//	Marker  Finding                                    Becomes
//	any     nothing to do yet                          the marker for the next work
//	q       redeliver, its row was published           p, because a redelivery may be put off for hours. Only
//	                                                   stages that read q first do so, and know of limits.
//	d       publish: its queue lost its limit          o, which publishing scans read
//	o       deliver: scheduled, its row was published  w
//	o       redeliver: its reservation is over by      p, which dispatch reads too, in case the queue gets a
//	        every clock, and its queue has no limit    limit
//	any     anything else                              stays
//
// A run without a published row stays in q: publishing ahead finds the end of its reservation in time.
func NextMarker(r *Run, seen Finding, wanted Stage, at Millis) (to Marker, moves bool) {
	switch {
	case r == nil:
		return Marker{}, false
	case seen.Stage == NoStage:
		return seen.Marker, true
	case seen.Stage == Redelivering && (wanted == Finalizing || wanted == Delivering) &&
		r.Marker().Kind == Deliverable && !seen.unsent:
		return Marker{Parked, seen.Since}, true
	case r.Marker().Kind == Slotless && seen.Stage == Publishing:
		return Marker{Unpublished, seen.Since}, true
	case r.Marker().Kind != Unpublished || seen.Outbox != "":
		return Marker{}, false
	case seen.Stage == Delivering:
		return Marker{Waiting, min(seen.Since, r.Marker().At)}, true
	case seen.Stage == Redelivering && at-r.DispatchExpiresAt >= Millis(strayPatience/time.Millisecond):
		return Marker{Parked, min(seen.Since, r.Marker().At)}, true
	default:
		return Marker{}, false
	}
}
