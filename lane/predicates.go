package lane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// RunnableAt is [runlane.Run.RunnableAt]: when a worker may take the run. ok is false if no time alone makes it
// runnable.
func RunnableAt(run *runlane.Run) (at time.Time, ok bool) { return run.RunnableAt() }

// DeliveryRecoveryAt returns when maintenance must ask for a fresh delivery: at the due time of a waiting run, at the
// end of a running run's lease. A queued run already has its delivery.
func DeliveryRecoveryAt(run *runlane.Run) (at time.Time, ok bool) {
	if run.Status == runlane.StatusQueued {
		return time.Time{}, false
	}
	return run.RunnableAt()
}

// CancellationFinalizationAt returns when maintenance must finish a requested cancellation: at the end of the lease.
func CancellationFinalizationAt(run *runlane.Run) (at time.Time, ok bool) {
	return run.Lease.ExpiresAt, run.Status == runlane.StatusCancellationRequested
}

// HoldsSlot reports whether a run of a bounded queue has a slot, by its state alone: it executes, or has a reservation,
// even an expired one.
func HoldsSlot(run *runlane.Run) bool {
	return run.Status.Owned() || run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero()
}

// RetainsKey reports whether a run with these facts owns its idempotency key at now. Times are in milliseconds.
//
//	the key is                       and is owned by
//	of a debounced run               a run that waits for its first time, until that time or the last trigger it takes
//	of a throttled run               any run, until its creation plus the window
//	another, of an active run        that run
//	another, kept for a time         a run that succeeded or was cancelled, until its creation plus that time
func RetainsKey(
	k runlane.KeyRetention, status runlane.Status, sequence, createdAt, runAt, now int64,
) bool {
	kept := now < createdAt+k.TTL.Milliseconds()
	switch {
	case k.UntilDue:
		return status == runlane.StatusScheduled && now < runAt && sequence <= runlane.MaxDebounced
	case k.Window:
		return kept
	case status.Active():
		return true
	default:
		return kept && status != runlane.StatusFailed && !k.WhileActive
	}
}

// PassesOn reports whether another run may get the key while this one is active: the key is of a debounced or throttled
// run.
func PassesOn(k runlane.KeyRetention) bool { return k.UntilDue || k.Window }

// ReplacedPayload returns the payload that an event of the transition puts in place of the run's. ok is false if none
// does: so it is for a copied history, whose first event has the latest payload.
func ReplacedPayload(t *Transition) (payload []byte, ok bool) {
	for i := range t.Events {
		if b, is := t.Events[i].Body.(*runlane.RunDebounced); is && b != nil && b.Payload != nil {
			payload, ok = b.Payload, true
		}
	}
	return payload, ok
}

// Repeats reports whether an operator made the run as a repetition of Source.RunID. All repetitions of a run have the
// same ID.
func Repeats(s *runlane.Source) bool {
	return s.Type == runlane.SourceRerun || s.Type == runlane.SourceManualRetry
}

// Precedence is the time that a priority counts for: among runs that wait for a slot or a polling worker, the one goes
// first whose time since which it waits is the earliest after its precedence is taken off.
func Precedence(priority int) time.Duration { return time.Duration(priority) * runlane.PriorityStep }

// RetryID is the ID of the run by which an operator retries a failed run. It includes the creation time: a reused ID
// names another run.
func RetryID(environment runlane.Environment, id runlane.RunID, created time.Time) runlane.RunID {
	return RepeatID(runlane.SourceManualRetry, environment, id, created)
}

// RepeatID is the ID of a repetition, of type SourceRerun or SourceManualRetry, of a run.
func RepeatID(
	kind runlane.SourceType, environment runlane.Environment, id runlane.RunID, created time.Time,
) runlane.RunID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", environment.Name(), kind, id, created.UnixMilli()))
	return runlane.RunID("run_" + hex.EncodeToString(sum[:16]))
}

// ReservationActive reports whether the queued run has a dispatch slot at t.
func ReservationActive(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && t.Before(run.DispatchExpiresAt)
}

// ReservationExpired reports whether the queued run's dispatch slot has expired at t.
func ReservationExpired(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero() && !t.Before(run.DispatchExpiresAt)
}
