package lane

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// MaxCommitEvents bounds the events of one commit.
const MaxCommitEvents = 100

// Transition is what every write to a run shares. core builds it; storage checks it with [Transition.Validate].
type Transition struct {
	// ExpectedSequence is the run's sequence as the caller read it, 0 for a new run.
	ExpectedSequence int64
	// Events are appended in this order.
	Events []runlane.Event
	// Projected is the run after the events. It names environment and run.
	Projected *runlane.Run
	// Queue is the policy in force now: storage keeps none.
	Queue runlane.Queue
	// PayloadHash is kept with the idempotency owner of a creation.
	PayloadHash string
	// WithoutRecords tells that the caller needs only Outbox of the answer. A storage may then leave Run and Events of
	// the Commit nil.
	WithoutRecords bool
}

// Key names the run.
func (t *Transition) Key() RunKey {
	return RunKey{Environment: t.Projected.Environment, RunID: t.Projected.ID}
}

// Creates reports whether the transition makes the run.
func (t *Transition) Creates() bool { return t.ExpectedSequence == 0 }

// Reserves reports whether the transition carries a reservation of a bounded queue's slot.
func (t *Transition) Reserves() bool { return !t.Projected.DispatchExpiresAt.IsZero() }

// Validate finds a command that contradicts itself: runlane.ErrContractViolation. Storages judge a stale sequence
// before they report it. It does not judge whether the events lead to the projection: that is core's.
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
	// ClaimUntil, when set, makes rows that are due at once claimed by the caller, who publishes them; the tokens are
	// in Commit.Outbox. Rows for a later time are always pending.
	ClaimUntil time.Time
	// Published: nothing is to be sent, the caller already holds the wakeup.
	Published bool
}

// Commit is what was written: exactly the records that ListRunEvents will return, and the outbox rows made. Run and
// Events may be nil where the command said WithoutRecords.
type Commit struct {
	// Run is the run afterwards.
	Run *runlane.Run
	// Events are the records written, with their ids and sequences.
	Events []runlane.EventRecord
	// Outbox are the rows made.
	Outbox []OutboxMessage
	// Untold says that the run has ended and that its end is to be told, see [Untold].
	Untold bool
}

// AppendCommand appends to a run.
type AppendCommand struct {
	Transition
	// LeaseToken proves that the run's owner writes. "" for writes of other callers.
	LeaseToken string
	// Outbox is how rows of run.delivery_requested events begin.
	Outbox InitialOutbox
	// Look, of a suspension, is what the attempt had looked at: nothing may have come since. nil for none.
	Look *Look
	// Flow, of the creation of a flow's run, is what the flow has to be. nil for none.
	Flow *FlowCheck
}

// ReserveCommand takes a slot of a bounded queue.
type ReserveCommand struct {
	Transition
	// At is the instant at which the run must be dispatchable.
	At time.Time
	// Outbox is how the row begins.
	Outbox InitialOutbox
}

// ReleaseDispatchCommand names a reservation.
type ReleaseDispatchCommand struct {
	RunKey
	// ExpiresAt is the reservation's end, as the run has it: no two reservations of a run end at one instant.
	ExpiresAt time.Time
	// At is the instant at which the slot becomes free.
	At time.Time
}

// ClaimCommand carries run.lease_claimed, and run.started with it. A bounded run needs its reservation, or Slot.
type ClaimCommand struct {
	Transition
	// At is the instant at which the run must be runnable.
	At time.Time
	// Slot takes a free slot in the same commit: for a bounded run without a live reservation.
	Slot bool
	// ByWakeup is false for poll workers: no message will be delivered again if they die after the claim. It is also
	// false for a lease that is shorter than the patience of scans, which find the run as soon as it is over.
	ByWakeup bool
}

// HeartbeatCommand carries run.lease_heartbeat.
type HeartbeatCommand struct{ Transition }

// ReleaseCommand names a lease that should be gone.
type ReleaseCommand struct {
	RunKey
	// LeaseToken is the one that should own nothing any more.
	LeaseToken string
}

// Outcome says whether ownership was acquired, and which race was lost otherwise. The zero value is not an outcome.
type Outcome string

// The outcomes of a claim or a reservation.
const (
	// Acquired: the commit was written.
	Acquired Outcome = "acquired"
	// LostSequence: the run has moved on.
	LostSequence Outcome = "stale_sequence"
	// LostReservation: the reservation is over.
	LostReservation Outcome = "reservation_expired"
	// LostCapacity: the bounded queue is full.
	LostCapacity Outcome = "no_capacity"
	// LostEligibility: the run is not runnable at that instant.
	LostEligibility Outcome = "not_eligible"
	// LostOccurrence: held by another owner, or completed, or not after the last fire.
	LostOccurrence Outcome = "already_claimed"
)

// Acquisition carries a Commit exactly when Outcome is [Acquired].
type Acquisition struct {
	Outcome Outcome
	Commit  *Commit
}
