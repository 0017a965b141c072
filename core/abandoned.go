package core

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// An attempt is abandoned when its lease ends without an outcome: its worker died, or lost the lease.

// historyPage is the page size for counting.
const historyPage = 20

// abandonedTooOften returns how many attempts in a row were abandoned, if the bound forbids another; otherwise 0.
func (rt *Runtime) abandonedTooOften(ctx context.Context, run *runlane.Run, at time.Time) (int, error) {
	if rt.maxAbandoned <= 0 || run.Status != runlane.StatusRunning || !run.Lease.Expired(at) ||
		run.Abandoned(at) < rt.maxAbandoned {
		return 0, nil
	}
	n, err := rt.abandonedInARow(ctx, run, at)
	if err != nil || n < rt.maxAbandoned {
		return 0, err
	}
	return n, nil
}

func (rt *Runtime) failAbandoned(ctx context.Context, run *runlane.Run, at time.Time, n int) (*runlane.Run, error) {
	message := fmt.Sprintf("%d attempts in a row ended without an outcome: their workers died or lost the lease.", n)
	return rt.appendEvent(ctx, run, at, &runlane.RunFailed{
		Attempt: run.Counters.Attempts, Failure: runlane.NewFailure(runlane.ErrLeaseExpired, message, nil),
	})
}

// abandonedInARow counts the abandoned attempts since the last outcome. Only a run with both outcomes and abandoned
// attempts needs its history; otherwise the run itself has the answer.
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
		page, err := rt.storage().ListRunEvents(ctx, &q)
		if err != nil {
			return 0, err
		}
		for i := range page.Items {
			switch effect := effectOf(&page.Items[i]); {
			case effect.attempt == attemptBegins:
				// Ignore attempts that began after the run was read.
				if startedAttempt(&page.Items[i]) <= run.Counters.Attempts {
					started++
				}
			case effect.final:
				return 0, nil // the run has ended meanwhile
			case effect.attempt == attemptEnds:
				return max(0, started-executing(run, at)), nil
			}
		}
		if page.Next == "" {
			return max(0, started-executing(run, at)), nil
		}
		q.After = page.Next
	}
}

// endedWithOutcome reports that the run's state shows an outcome of its last attempt. A queued run keeps the record of
// a failure until the next attempt, but none of a release.
func endedWithOutcome(run *runlane.Run) bool {
	switch {
	case run.Status.Owned():
		return false
	case run.Status.Waiting() && run.Status != runlane.StatusScheduled:
		return true
	default:
		return !run.Failure.IsZero()
	}
}

// executing is 1 while the last attempt may still have an outcome, else 0.
func executing(run *runlane.Run, at time.Time) int {
	if run.Status.Owned() && !run.Lease.Expired(at) {
		return 1
	}
	return 0
}
