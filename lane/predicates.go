package lane

import (
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

// Repeats reports the source of a run that an operator made of another: its id is that of every such repetition.
func Repeats(s *runlane.Source) bool {
	return s.Type == runlane.SourceRerun || s.Type == runlane.SourceManualRetry
}

// ReservationActive reports whether the queued run owns a dispatch slot at t.
func ReservationActive(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && t.Before(run.DispatchExpiresAt)
}

// ReservationExpired reports whether the queued run had a dispatch slot which is over at t.
func ReservationExpired(run *runlane.Run, t time.Time) bool {
	return run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero() && !t.Before(run.DispatchExpiresAt)
}
