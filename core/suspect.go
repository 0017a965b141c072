package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// A run whose last attempt was abandoned is a suspect: it may be what killed its worker. No attempt of a suspect is executed beside
// another suspect's in one process, nor in a Lambda invocation beside any (docs/decisions.md, Leases and workers).

const (
	// suspectAgain is about when a wakeup comes again whose run has to wait for another suspect to end.
	suspectAgain = 30 * time.Second
	// historyPage is how many events are read at once to count the attempts that were abandoned in a row.
	historyPage = 20
)

// abandonedInARow counts the attempts up to the last one, as seen at an instant, that ended without an outcome. The run alone says it
// nearly always; the history is read of runs that had both, outcomes and abandoned attempts.
func (rt *Runtime) abandonedInARow(ctx context.Context, run *runlane.Run, at time.Time) (int, error) {
	inAll := run.Abandoned(at)
	switch {
	case inAll <= 0, endedWithOutcome(run):
		return 0, nil
	case run.Counters.Failures+run.Counters.Releases == 0:
		return inAll, nil
	}
	q := lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: historyPage}, RunID: run.ID, Descending: true,
	}
	started := 0
	for {
		page, err := rt.lane.Storage.ListRunEvents(ctx, &q)
		if err != nil {
			return 0, err
		}
		for i := range page.Items {
			switch body := page.Items[i].Body.(type) {
			case *runlane.RunStarted:
				if body.Attempt <= run.Counters.Attempts { // not one that began after the run was read
					started++
				}
			case *runlane.RunRetryScheduled, *runlane.RunReleased:
				return max(0, started-executing(run, at)), nil
			case *runlane.RunCreated, *runlane.RunDeliveryRequested, *runlane.RunLeaseClaimed, *runlane.RunLeaseHeartbeat,
				*runlane.RunCancellationRequested, *runlane.UnknownEvent:
				// neither begin an attempt nor end one with an outcome
			case *runlane.RunSucceeded, *runlane.RunFailed, *runlane.RunCancelled:
				return 0, nil // it has ended since it was read
			}
		}
		if page.Next == "" {
			return max(0, started-executing(run, at)), nil
		}
		q.After = page.Next
	}
}

// endedWithOutcome reports a run whose state says that its last attempt had an outcome. A queued run may have had one too: of a failure
// it keeps the record until the next attempt, of a release nothing.
func endedWithOutcome(run *runlane.Run) bool {
	switch run.Status {
	case runlane.StatusRetrying, runlane.StatusReleased:
		return true
	case runlane.StatusRunning, runlane.StatusCancellationRequested:
		return false
	default:
		return !run.Failure.IsZero()
	}
}

// executing is 1 while the last attempt may still have an outcome.
func executing(run *runlane.Run, at time.Time) int {
	if (run.Status == runlane.StatusRunning || run.Status == runlane.StatusCancellationRequested) && !run.Lease.Expired(at) {
		return 1
	}
	return 0
}

// suspect takes care that a suspect is not executed beside attempts that it could take along. It waits, or says why the run is not
// executed now; release is to be called when the attempt is over.
func (d *delivery) suspect(ctx context.Context, run *runlane.Run, at time.Time) (release func(), ignored Ignored, err error) {
	release = func() {}
	if !d.time.Beside && d.suspects == nil {
		return release, "", nil
	}
	n, err := d.rt.abandonedInARow(ctx, run, at)
	if err != nil || n == 0 {
		return release, "", err
	}
	if d.time.Beside {
		return nil, "", suspected(run.ID)
	}
	if d.byWakeup {
		select {
		case d.suspects <- struct{}{}:
			return func() { <-d.suspects }, "", nil
		default:
		}
		wait := d.rt.world.around(suspectAgain)
		if !d.rt.canDelay(run.Queue, wait) {
			return nil, "", suspected(run.ID)
		}
		return nil, IgnoredSuspect, d.rt.sendDelayed(ctx, d.rt.delayedWakeup(run, wait))
	}
	select {
	case d.suspects <- struct{}{}:
		return func() { <-d.suspects }, "", nil
	case <-ctx.Done():
		return nil, "", cancelled(ctx, run.ID)
	}
}

func suspected(id runlane.RunID) error {
	return &runlane.Error{
		Code: runlane.ErrLeaseExpired, RunID: id, Retryable: true, Cause: ErrSuspect,
		Message: "the run's last attempt ended without an outcome: it is not executed beside others",
		Hint:    "execute it when the others have ended, or hand the wakeup back with a delay",
	}
}
