package embedded

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// RunnableAt is [runlane.Run.RunnableAt]: when a worker may claim the run. ok is false if time alone does not make it
// runnable.
func (s *State) RunnableAt() (at Millis, ok bool) {
	return runlane.RunnableSince(s.Status, s.UpdatedAt, s.RunAt, s.LeaseExpiresAt, Absent)
}

func (s *State) queuedSince() Millis {
	at, _ := s.RunnableAt()
	return at
}

// Due is the time by which lists order the run:
//
//	queued                             runAt ?? updatedAt
//	scheduled, retrying, released      runAt
//	running, cancellation requested    end of the lease
//	finished                           end of the run
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

// Retains is [lane.RetainsKey]: whether the run owns its idempotency key at now.
func (s *State) Retains(policy runlane.KeyRetention, now Millis) bool {
	return lane.RetainsKey(policy, s.Status, s.Sequence, int64(s.CreatedAt), int64(s.RunAt), int64(now))
}

// DeliveryKind is a list of outbox rows; 0 is none.
type DeliveryKind int64

// The lists of outbox rows. The numbers are stored.
const (
	Unpublished DeliveryKind = 1 // by availability, or by the end of the claim
	Published   DeliveryKind = 2 // of queued runs: by when the wakeup counts as lost
	Dead        DeliveryKind = 3 // by when the row was given up
)

// Place returns the list of the live row and the time that orders it there.
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
	default:
		if s.Status != runlane.StatusQueued || s.DispatchExpiresAt != Absent {
			return 0, Absent // found by scans for due waits or by the end of its reservation
		}
		return Published, o.redeliverAt(d)
	}
}

// Undelivered is from when a queued run without a certain delivery needs a slot or another delivery: without one, from
// when it is runnable; with a reservation, from its end.
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

// WantsSlot is from when the run wants a slot: queued without a live reservation, waiting and due, or running with an
// expired lease. A run with a dead letter waits for an operator instead.
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

// DispatchableSince is WantsSlot for reservations, which an operator may also make for a queued run with a dead
// letter.
func (o *Outbox[T]) DispatchableSince(s *State) (since Millis, ok bool) {
	since, ok = o.WantsSlot(s)
	if !ok && s.Status == runlane.StatusQueued {
		return max(s.queuedSince(), s.DispatchExpiresAt), true
	}
	return since, ok
}

// NeedsDelivery judges a due run by its live row, or nil. A row still to be published gives ref its ID. A dead letter
// waits for an operator.
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

// Unbounded takes the run if the query has no limit for its queue.
func Unbounded(q *lane.DueQuery, queue runlane.QueueName) Verdict {
	if BoundedPolicy(q, queue).Bounded() {
		return Skip
	}
	return Take
}
