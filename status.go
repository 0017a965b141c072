package runlane

import "slices"

// Status is the state of a run.
type Status string

// The statuses of a run.
const (
	// StatusQueued waits for a worker or, in a bounded queue, for a slot.
	StatusQueued Status = "queued"
	// StatusScheduled has a delivery requested for a later time.
	StatusScheduled Status = "scheduled"
	// StatusRunning is owned by a worker under a lease.
	StatusRunning Status = "running"
	// StatusCancellationRequested still runs. Its owner was asked to stop; maintenance ends the run once the lease is
	// over.
	StatusCancellationRequested Status = "cancellation_requested"
	// StatusRetrying failed and waits for its next attempt.
	StatusRetrying Status = "retrying"
	// StatusReleased waits because its handler asked to; this is not a failure.
	StatusReleased  Status = "released"
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Statuses lists every status known to this version, active ones first.
func Statuses() []Status {
	return []Status{
		StatusQueued, StatusScheduled, StatusRunning, StatusCancellationRequested, StatusRetrying, StatusReleased,
		StatusSucceeded, StatusFailed, StatusCancelled,
	}
}

// phase groups statuses that behave alike. Code asks for the phase unless it must distinguish statuses, so a new status
// needs only a constant, a row in each of the two lists of this file, and an event that leads to it.
type phase byte

const (
	phaseUnknown   phase = iota // from a newer version; leave the run alone
	phaseQueued                 // due since RunAt, or since its last event
	phaseWaiting                // due at RunAt
	phaseOwned                  // a worker has it under a lease
	phaseSucceeded              // the last three are terminal
	phaseFailed
	phaseCancelled
)

func (s Status) phase() phase {
	switch s {
	case StatusQueued:
		return phaseQueued
	case StatusScheduled, StatusRetrying, StatusReleased:
		return phaseWaiting
	case StatusRunning, StatusCancellationRequested:
		return phaseOwned
	case StatusSucceeded:
		return phaseSucceeded
	case StatusFailed:
		return phaseFailed
	case StatusCancelled:
		return phaseCancelled
	default:
		return phaseUnknown
	}
}

// Terminal reports whether the run can no longer change. Rerun and manual retry make new runs.
func (s Status) Terminal() bool { return s.End() != "" }

// End maps a terminal status to StatusSucceeded, StatusFailed or StatusCancelled, and every other status to "". Results
// of calls, nodes of flows, exit codes and colors go by it, so a new terminal status is classified here only.
func (s Status) End() Status {
	switch s.phase() {
	case phaseSucceeded:
		return StatusSucceeded
	case phaseFailed:
		return StatusFailed
	case phaseCancelled:
		return StatusCancelled
	default:
		return ""
	}
}

// TerminalStatuses lists the terminal ones of [Statuses].
func TerminalStatuses() []Status { return slices.DeleteFunc(Statuses(), Status.Active) }

// Active reports whether the run can still change. An unknown status of a newer writer is active.
func (s Status) Active() bool { return !s.Terminal() }

// Waiting reports whether the run waits for Run.RunAt: scheduled, retrying or released.
func (s Status) Waiting() bool { return s.phase() == phaseWaiting }

// Owned reports whether a worker holds the run under a lease: running, or still running after a cancellation request.
func (s Status) Owned() bool { return s.phase() == phaseOwned }

// Known reports whether this version knows the status.
func (s Status) Known() bool { return s.phase() != phaseUnknown }

// RunnableSince returns the instant from which a worker may take a run. T is the storage's type of an instant; none is
// its value for "no instant":
//
//	the run                              may be taken from
//	is queued                            runAt, or updatedAt if runAt is none
//	is waiting                           runAt
//	is running                           leaseEnd
//	was asked to stop, has ended         never: ok is false
//	has a status of a newer version      never: ok is false
//
// This is the only place for this rule. [Run.RunnableAt] applies it to a run.
func RunnableSince[T comparable](s Status, updatedAt, runAt, leaseEnd, none T) (since T, ok bool) {
	switch {
	case s == StatusQueued && runAt == none:
		return updatedAt, true
	case s == StatusQueued, s.Waiting():
		return runAt, true
	case s == StatusRunning:
		return leaseEnd, true
	default:
		return none, false
	}
}

// AttemptStatus is the outcome of one attempt. It is derived from the run's events and never stored.
type AttemptStatus string

// The statuses of an attempt.
const (
	AttemptRunning   AttemptStatus = "running"
	AttemptSucceeded AttemptStatus = "succeeded"
	AttemptFailed    AttemptStatus = "failed"
	// AttemptRetrying failed and scheduled another.
	AttemptRetrying AttemptStatus = "retrying"
	// AttemptReleased put the run back to resume later.
	AttemptReleased  AttemptStatus = "released"
	AttemptCancelled AttemptStatus = "cancelled"
	// AttemptAbandoned lost its lease without an outcome.
	AttemptAbandoned AttemptStatus = "abandoned"
)
