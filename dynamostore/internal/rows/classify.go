package rows

import (
	"cmp"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Stage is the stage of maintenance that has something to do about a run.
type Stage int

// The stages of maintenance.
const (
	NoStage      Stage = iota
	Finalizing         // its cancellation is to be finished
	Delivering         // it needs a fresh delivery request, or its scheduled row is to be published
	Publishing         // its outbox row is to be published
	Redelivering       // its published wakeup is to be sent again
	Dispatching        // it needs a slot of its bounded queue
	Telling            // it has ended, and its end is to be told
)

// ScanKinds are the markers that may hide work of a stage. A claim leaves its marker in q or w, so expired leases are
// there too. Runs that wait for a slot need none any more once their queue has lost its limit.
var ScanKinds = map[Stage][]MarkerKind{
	Finalizing:   {Deliverable, Waiting, Leased},
	Delivering:   {Deliverable, Waiting, Leased, Slotless},
	Publishing:   {Unpublished, Deliverable, Waiting},
	Telling:      {Ended},
	Redelivering: {Parked, Deliverable, Leased, Slotless}, // leased: reservations from when the queue had a limit
}

// Finding says what a run needs: a stage's work since a moment, or no work yet and the marker at which there will be
// some.
type Finding struct {
	Stage  Stage
	Since  Millis
	Outbox string // the row to publish
	unsent bool   // redelivering: its row was not published, and can be until its reservation is over
	Marker Marker // if there is nothing to do yet
}

// Concerns reports that the stage has work. The due row of a scheduled run is found both by delivering and by
// publishing.
func (s Finding) Concerns(wanted Stage) bool {
	return s.Stage == wanted || wanted == Publishing && s.Outbox != ""
}

// Classify classifies a run with its latest delivery row at an instant, by the last table of docs/internals/layout.md,
// Marker table. row is nil when the run has none. bounded says that the queue has a limit now, as far as the reader
// knows; a reservation is classified by the run alone.
func Classify(r *Run, row *Delivery, at Millis, bounded bool) Finding {
	recovering := Delivering
	if bounded {
		recovering = Dispatching
	}
	switch status := r.State(); {
	case r.Untold():
		return Finding{Stage: Telling, Since: r.FinishedAt}
	case status == runlane.StatusCancellationRequested:
		return dueOr(Finalizing, r.LeaseUntil, at, Marker{Leased, r.LeaseUntil})
	case status == runlane.StatusRunning:
		return dueOr(recovering, r.LeaseUntil, at, Marker{Leased, r.LeaseUntil})
	case status == runlane.StatusScheduled:
		if bounded || row == nil || row.State() == lane.OutboxPublished {
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
	case status.Waiting(): // after an attempt: nothing is published before it is due
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
		return Finding{Stage: Redelivering, Since: since, unsent: unsent} // its queue has no limit any more
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
	if row == nil { // created without a delivery, or superseded while it waits for a slot: it still needs a request
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

// shortWait reports a wait of at most 15 minutes that only its time ends: its delayed wakeup was sent when it began.
func shortWait(r *Run) bool {
	const longestNativeDelay = 15 * time.Minute
	return r.Waiting().Timed() && r.RunAt-r.UpdatedAt <= Millis(longestNativeDelay/time.Millisecond)
}

// Patient reports that the reader may leave the row to the processes that surely handle it already.
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

// HandedOver reports a scheduled run whose wakeup was given to the transport so recently that it is surely on its way.
func HandedOver(r *Run, row *Delivery, at Millis, p lane.Patience) bool {
	return r.State() == runlane.StatusScheduled && row != nil && row.State() == lane.OutboxPublished &&
		row.Published > at-Millis(p.Queued/time.Millisecond)
}

// strayPatience is how long after its end a reservation counts as over by every clock.
const strayPatience = time.Minute

// NextMarker is the marker that a scan for a stage puts in place of a run's marker; moves is false if it stays.
//
//	Marker  Finding                                    Becomes
//	any     nothing to do yet                          the marker at which there will be something
//	q       redeliver, its row was published           p, because a redelivery may be put off for hours. Only
//	                                                   stages that read q first do so, and know of limits.
//	d       publish: its queue lost its limit          o, which publishing scans read
//	o       deliver: scheduled, its row was published  w
//	o       redeliver: its reservation is over by      p, which dispatch reads too, should there be a limit
//	        every clock, and its queue has no limit
//	any     anything else                              stays
//
// A run whose row was never published stays in q: publishing ahead finds the end of its reservation in time.
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
