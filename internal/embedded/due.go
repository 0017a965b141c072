package embedded

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// RunnableAt is [runlane.Run.RunnableAt] of the run: when a worker may take it; ok is false while no time alone makes it
// runnable.
func (s *State) RunnableAt() (at Millis, ok bool) {
	return runlane.RunnableSince(s.Status, s.UpdatedAt, s.RunAt, s.LeaseExpiresAt, Absent)
}

// queuedSince is from when a queued run may be taken.
func (s *State) queuedSince() Millis {
	at, _ := s.RunnableAt()
	return at
}

// Due is the instant by which a run lies in its list:
//
//	queued                             runAt ?? updatedAt
//	scheduled, retrying, released      runAt
//	running, cancellation requested    the end of the lease
//	finished                           the end of the run
func (s *State) Due() Millis {
	switch {
	case s.Status.Waiting():
		return s.RunAt
	case s.Status == runlane.StatusQueued:
		return s.queuedSince()
	case s.Status.Owned():
		return s.LeaseExpiresAt
	default:
		return s.FinishedAt
	}
}

// Retains reports whether the run still owns its idempotency key at now. An active run always does. A failed one never;
// a successful or cancelled one until its time to live, counted from creation, is over.
func (s *State) Retains(policy runlane.KeyRetention, now Millis) bool {
	switch {
	case s.Status.Active():
		return true
	case s.Status == runlane.StatusFailed, policy.WhileActive, policy.TTL <= 0:
		return false
	default:
		return now < s.CreatedAt.Add(policy.TTL)
	}
}

// DeliveryKind is a list of outbox rows. 0 is nowhere.
type DeliveryKind int64

// The lists of outbox rows. The numbers are stored.
const (
	Unpublished DeliveryKind = 1 // by when it may be published, or by the end of its claim
	Published   DeliveryKind = 2 // of queued runs: by when it counts as lost
	Dead        DeliveryKind = 3 // since when it is given up
)

// Place is the list that has the live row, and its place there.
func (o *Outbox[T]) Place(s *State) (DeliveryKind, Millis) {
	d := o.Live(s)
	if d == nil {
		return 0, Absent
	}
	switch d.Status {
	case lane.OutboxPending, lane.OutboxFailed:
		return Unpublished, d.AvailableAt
	case lane.OutboxClaimed:
		return Unpublished, d.ClaimUntil
	case lane.OutboxDeadLettered:
		return Dead, d.Since
	default: // published
		if s.Status != runlane.StatusQueued || s.DispatchExpiresAt != Absent {
			return 0, Absent // the scan of due waits finds a scheduled run, the end of its reservation a reserved one
		}
		return Published, o.RedeliverAt(d)
	}
}

// Undelivered is from when a queued run that no delivery is certain to bring to a worker needs a slot or another
// delivery: one without a delivery from when it may be taken, one with a reservation from its end.
func (o *Outbox[T]) Undelivered(s *State) (since Millis, ok bool) {
	if s.Status != runlane.StatusQueued {
		return 0, false
	}
	switch d := o.Live(s); {
	case d == nil:
		return s.queuedSince(), true
	case s.DispatchExpiresAt != Absent && d.Status != lane.OutboxDeadLettered:
		return s.DispatchExpiresAt, true
	default:
		return 0, false
	}
}

// WantsSlot is from when on the run wants a slot: queued without a live reservation, waiting and due, or running with
// an expired lease. A run whose wakeup was given up waits for an operator instead.
func (o *Outbox[T]) WantsSlot(s *State) (since Millis, ok bool) {
	if d := o.Live(s); d != nil && d.Status == lane.OutboxDeadLettered {
		return 0, false
	}
	since, ok = s.RunnableAt()
	if s.Status == runlane.StatusQueued {
		since = max(since, s.DispatchExpiresAt)
	}
	return since, ok
}

// DispatchableSince is WantsSlot for a reservation: an operator may bring back a queued run whose wakeup was given up.
func (o *Outbox[T]) DispatchableSince(s *State) (since Millis, ok bool) {
	since, ok = o.WantsSlot(s)
	if !ok && s.Status == runlane.StatusQueued {
		return max(s.queuedSince(), s.DispatchExpiresAt), true
	}
	return since, ok
}

// DueOf is where a run lies in its list, by the predicates of the contract: what checks compare the indexes with.
func DueOf(run *runlane.Run) (at time.Time, ok bool) {
	switch {
	case run.Status == runlane.StatusCancellationRequested:
		return lane.CancellationFinalizationAt(run)
	case run.Status.Terminal():
		return run.FinishedAt, true
	default:
		return lane.RunnableAt(run)
	}
}

// NeedsDelivery judges a due run for ListRunsNeedingDelivery by its live row, nil for none. A row that is still to be
// published comes along in ref; one that was given up waits for the operator.
func NeedsDelivery[T comparable](q *lane.DueQuery, d *Delivery[T], ref *lane.RunRef) Verdict {
	switch {
	case BoundedPolicy(q, ref.Queue).Bounded():
		return Skip
	case d == nil || d.Status == lane.OutboxPublished:
		return Take
	case d.Status == lane.OutboxDeadLettered:
		return Skip
	default:
		ref.OutboxID = EventID(ref.RunID, d.Sequence)
		return Take
	}
}

// Unbounded takes the runs of queues for which the query has no limit.
func Unbounded(q *lane.DueQuery, queue runlane.QueueName) Verdict {
	if BoundedPolicy(q, queue).Bounded() {
		return Skip
	}
	return Take
}
