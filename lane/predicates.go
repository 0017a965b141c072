package lane

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// RunnableAt is when a worker may take the run; ok is false while no time alone makes it runnable. It is
// [runlane.Run.RunnableAt].
func RunnableAt(run *runlane.Run) (at time.Time, ok bool) { return run.RunnableAt() }

// DeliveryRecoveryAt is when maintenance must ask for a fresh delivery: at the due time of a waiting run, at the end of
// a running run's lease. A queued run has its delivery already.
func DeliveryRecoveryAt(run *runlane.Run) (at time.Time, ok bool) {
	if run.Status == runlane.StatusQueued {
		return time.Time{}, false
	}
	return run.RunnableAt()
}

// CancellationFinalizationAt is when maintenance must finish a requested cancellation: at the end of the owner's lease.
func CancellationFinalizationAt(run *runlane.Run) (at time.Time, ok bool) {
	return run.Lease.ExpiresAt, run.Status == runlane.StatusCancellationRequested
}

// HoldsSlot reports whether a run of a bounded queue has a slot, by its state alone: it executes, or one was reserved
// for it, whether or not the reservation is over.
func HoldsSlot(run *runlane.Run) bool {
	return run.Status.Owned() || run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero()
}

// ReservationActive reports whether the queued run owns a dispatch slot at t.
func ReservationActive(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && t.Before(run.DispatchExpiresAt)
}

// ReservationExpired reports whether the queued run had a dispatch slot which is over at t.
func ReservationExpired(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero() && !t.Before(run.DispatchExpiresAt)
}

// The status groups of the scans: gates on status alone, time and lease come from the predicates above, from which they
// derive.
var (
	runnableCandidates                 = candidates(RunnableAt)
	deliveryRecoveryCandidates         = candidates(DeliveryRecoveryAt)
	cancellationFinalizationCandidates = candidates(CancellationFinalizationAt)
)

// candidates are the statuses that a predicate may say yes to.
func candidates(predicate func(*runlane.Run) (time.Time, bool)) []runlane.Status {
	return slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool {
		_, ok := predicate(&runlane.Run{Status: s})
		return !ok
	})
}

// RunnableCandidates are the statuses that [Storage.ListRunnableRuns] may return.
func RunnableCandidates() []runlane.Status { return slices.Clone(runnableCandidates) }

// DeliveryRecoveryCandidates are the statuses that [Storage.ListRunsNeedingDelivery] may return.
func DeliveryRecoveryCandidates() []runlane.Status { return slices.Clone(deliveryRecoveryCandidates) }

// CancellationFinalizationCandidates are the statuses that [Storage.ListRunsNeedingCancellationFinalization] may
// return.
func CancellationFinalizationCandidates() []runlane.Status {
	return slices.Clone(cancellationFinalizationCandidates)
}

// IsRunnableCandidate reports whether the status is one of [RunnableCandidates].
func IsRunnableCandidate(s runlane.Status) bool { return slices.Contains(runnableCandidates, s) }

// IsDeliveryRecoveryCandidate reports whether the status is one of [DeliveryRecoveryCandidates].
func IsDeliveryRecoveryCandidate(s runlane.Status) bool {
	return slices.Contains(deliveryRecoveryCandidates, s)
}

// IsCancellationFinalizationCandidate reports whether the status is one of [CancellationFinalizationCandidates].
func IsCancellationFinalizationCandidate(s runlane.Status) bool {
	return slices.Contains(cancellationFinalizationCandidates, s)
}
