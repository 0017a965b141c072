package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// MaxCommitEvents bounds the events of one commit.
const MaxCommitEvents = 100

// Transition is the common part of every write to a run. core builds it; storage checks it with [Transition.Validate].
type Transition struct {
	// ExpectedSequence is the sequence that the caller read, 0 for a new run.
	ExpectedSequence int64
	// Events are appended in this order.
	Events []runlane.Event
	// Projected is the run after the events, with its environment and ID.
	Projected *runlane.Run
	// Queue is the current policy; storages keep none.
	Queue runlane.Queue
	// PayloadHash is kept with a creation's idempotency owner.
	PayloadHash string
	// WithoutRecords: the caller needs only Outbox of the commit, and a storage may leave its Run and Events nil.
	WithoutRecords bool
}

// Key returns the run's key.
func (t *Transition) Key() RunKey {
	return RunKey{Environment: t.Projected.Environment, RunID: t.Projected.ID}
}

// Creates reports whether the transition makes the run.
func (t *Transition) Creates() bool { return t.ExpectedSequence == 0 }

// Reserves reports whether the transition carries a reservation of a bounded queue's slot.
func (t *Transition) Reserves() bool { return !t.Projected.DispatchExpiresAt.IsZero() }

// Validate returns runlane.ErrContractViolation if the command contradicts itself. Storages check for a stale sequence
// first. It does not check that the events lead to the projection; that is core's part.
func (t *Transition) Validate() error {
	violation := func(format string, args ...any) error {
		e := &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...)}
		if t.Projected != nil {
			e.RunID = t.Projected.ID
		}
		return e
	}
	p := t.Projected
	switch {
	case p == nil:
		return violation("transition has no projected run")
	case p.ID.Validate() != nil, p.Environment.Validate() != nil:
		return violation("projected run has no valid id or environment")
	case !p.Status.Known():
		return violation("projected run has the unknown status %q", p.Status)
	case t.ExpectedSequence < 0:
		return violation("expected sequence %d is negative", t.ExpectedSequence)
	case len(t.Events) == 0:
		return violation("transition has no events")
	case len(t.Events) > MaxCommitEvents:
		return violation("transition has %d events, more than %d", len(t.Events), MaxCommitEvents)
	case p.EventSequence != t.ExpectedSequence+int64(len(t.Events)):
		return violation("projected sequence is %d, not %d", p.EventSequence, t.ExpectedSequence+int64(len(t.Events)))
	case t.Queue.Name != "" && t.Queue.Name != p.Queue:
		return violation("policy of queue %q given for a run of queue %q", t.Queue.Name, p.Queue)
	}
	for i, e := range t.Events {
		if isNil(e.Body) {
			return violation("event %d has no body", i)
		}
		if e.RunID != p.ID || e.Environment.Name() != p.Environment.Name() {
			return violation("event %d is of another run or environment", i)
		}
		if created := e.Type() == runlane.EventCreated; created != (t.Creates() && i == 0) {
			return violation("run.created is the first event of a new run and no other")
		}
		switch body := e.Body.(type) {
		case *runlane.UnknownEvent:
			return violation("event %d has no known body", i)
		case *runlane.RunDeliveryRequested:
			d := body.Delivery
			if d.RunID != p.ID || d.Environment.Name() != p.Environment.Name() || d.Queue != p.Queue {
				return violation("delivery of event %d is for another run, environment or queue", i)
			}
		}
	}
	return nil
}

// InitialOutbox is the initial state of a commit's outbox rows. The zero value is pending: the relay publishes.
type InitialOutbox struct {
	// ClaimUntil, if set, claims rows that are due at once for the caller, who publishes them; the tokens are in
	// Commit.Outbox. Rows for a later time are always pending.
	ClaimUntil time.Time
	// Published: nothing to send, because the caller already holds the wakeup.
	Published bool
}

// Commit is the result of a write: the Run afterwards, its Events with IDs and sequences, exactly as ListRunEvents will
// return them, and the new rows in Outbox. Run and Events may be nil if the command has WithoutRecords.
type Commit struct {
	Run    *runlane.Run
	Events []runlane.EventRecord
	Outbox []OutboxMessage
	// NotificationPending: the run has ended and its notification is pending, see [MustNotify].
	NotificationPending bool
}

// AppendCommand appends to a run.
type AppendCommand struct {
	Transition
	// LeaseToken proves the owner's writes. "" for writes of other callers.
	LeaseToken string
	// Outbox is the initial state of run.delivery_requested rows.
	Outbox InitialOutbox
	// Look is the state on which a suspension depends; it must not have changed. nil for none.
	Look *Look
	// Flow is the required state of the flow, for the creation of a flow's run. nil for none.
	Flow *FlowCheck
	// Writes of the application, for a creation: all of them are made with it or none. nil for none. Another kind than the
	// storage's own is runlane.ErrValidationFailed, a refused one runlane.ConflictWrites after all other conflicts.
	Writes runlane.Writes
}

// ReserveCommand takes a slot of a bounded queue. The run must be dispatchable at At; Outbox is the initial state of
// the row.
type ReserveCommand struct {
	Transition
	At     time.Time
	Outbox InitialOutbox
}

// ReleaseDispatchCommand names a reservation.
type ReleaseDispatchCommand struct {
	RunKey
	// ExpiresAt is the reservation's end in the run: no two reservations of a run end at one instant.
	ExpiresAt time.Time
	// At is when the slot becomes free.
	At time.Time
}

// ClaimCommand carries run.lease_claimed and usually run.started. A bounded run needs its reservation, or Slot.
type ClaimCommand struct {
	Transition
	// At is when the run must be runnable.
	At time.Time
	// Slot takes a free slot in the same commit, for a bounded run without a live reservation.
	Slot bool
	// ByWakeup is false for poll workers, since no message will be redelivered if they die after the claim. It is also
	// false for a lease shorter than the patience of scans, which then find the run as soon as the lease is over.
	ByWakeup bool
}

// HeartbeatCommand carries run.lease_heartbeat.
type HeartbeatCommand struct{ Transition }

// ReleaseCommand names a lease that should have ended: LeaseToken should no longer own the run.
type ReleaseCommand struct {
	RunKey
	LeaseToken string
}

// Outcome is the result of an acquisition: acquired, or the race that was lost. The zero value is not an outcome.
type Outcome string

// The outcomes of a claim or a reservation.
const (
	// Acquired: the commit was written.
	Acquired Outcome = "acquired"
	// LostSequence: the run has changed.
	LostSequence Outcome = "stale_sequence"
	// LostReservation: the reservation is over.
	LostReservation Outcome = "reservation_expired"
	// LostCapacity: the bounded queue is full.
	LostCapacity Outcome = "no_capacity"
	// LostRate: the queue's rate allows no start at that instant.
	LostRate Outcome = "no_rate"
	// LostEligibility: the run is not runnable at that instant.
	LostEligibility Outcome = "not_eligible"
	// LostOccurrence: held by another owner, completed, or not after the last fire.
	LostOccurrence Outcome = "already_claimed"
)

// Acquisition has a Commit if and only if Outcome is [Acquired]. A claim in a queue with a rate has the Pace of its
// partition if it was acquired or is [LostRate].
type Acquisition struct {
	Outcome Outcome
	Commit  *Commit
	Pace    Pace
}
