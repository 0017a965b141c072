package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

// A suspect is a run that may have killed its worker. A process executes one suspect at a time, and a Lambda invocation
// executes it alone (docs/internals/design.md, Leases and workers). In an invocation one abandoned attempt is enough; a
// worker has many runs, of which its death says little: there the run has to be the last of suspectAfter workers.

const (
	// suspectAgain is the approximate delay of a wakeup that waits for another suspect to end.
	suspectAgain = 30 * time.Second
	// suspectTime is how long a suspect excludes others from its worker. A suspect that lives longer does not kill its
	// worker at once, and long attempts that lost power with their worker need not execute one after the other.
	suspectTime = time.Minute
)

// suspect keeps a suspect from executing next to attempts that would die with it. ignored is why the run does not
// execute now. Call release after the attempt.
func (d *delivery) suspect(
	ctx context.Context, run *runlane.Run, at time.Time,
) (release func(), ignored Ignored, err error) {
	release = func() {}
	if !d.time.Beside && d.suspects == nil {
		return release, "", nil
	}
	n, err := d.rt.abandonedInARow(ctx, run, at)
	if err != nil || n == 0 || !d.time.Beside && n < d.rt.suspectAfter() {
		return release, "", err
	}
	if d.time.Beside {
		return nil, "", suspected(run.ID)
	}
	select {
	case d.suspects <- struct{}{}:
		return d.releaseSuspect(), "", nil
	default:
	}
	if !d.byWakeup {
		// The poller reads this run again later. Never wait between reading a run and claiming it.
		return nil, IgnoredSuspect, nil
	}
	wait := d.rt.world.around(suspectAgain)
	if !d.rt.canDelay(run.Queue, wait) {
		return nil, "", suspected(run.ID)
	}
	return nil, IgnoredSuspect, d.rt.sendDelayed(ctx, d.rt.delayedWakeup(run, wait))
}

// suspectAfter is the number of workers that died with a run before other workers suspect it: two, or what leaves it an
// attempt apart before MaxAbandoned fails it.
func (rt *Runtime) suspectAfter() int {
	if rt.maxAbandoned > 0 {
		return min(2, rt.maxAbandoned-1)
	}
	return 2
}

// releaseSuspect admits the next suspect once this attempt has ended, or after suspectTime.
func (d *delivery) releaseSuspect() func() {
	release := sync.OnceFunc(func() { <-d.suspects })
	timer := time.AfterFunc(suspectTime, release)
	return func() {
		timer.Stop()
		release()
	}
}

// Suspect reports whether the run's last attempt ended without an outcome, so that [Runtime.ExecuteDelivery] does not
// execute it with others (DeliveryOptions.Beside). It writes no data. A missing run is no suspect. A bridge calls it
// for redelivered wakeups, to execute suspects while enough time is left. Errors are the storage's.
func (rt *Runtime) Suspect(ctx context.Context, id runlane.RunID) (bool, error) {
	if err := rt.gate.enter(); err != nil {
		return false, err
	}
	defer rt.gate.leave()
	run, err := rt.storage().GetRun(apart.Leave(ctx), lane.RunKey{Environment: rt.environment, RunID: id})
	if err != nil || run == nil || !run.Status.Active() {
		return false, err
	}
	n, err := rt.abandonedInARow(ctx, run, rt.now())
	return n > 0, err
}

func suspected(id runlane.RunID) error {
	return &runlane.Error{
		Code:      runlane.ErrLeaseExpired,
		RunID:     id,
		Retryable: true,
		Cause:     ErrSuspect,
		Message:   "the run's last attempt ended without an outcome: it must execute alone",
		Hint:      "execute it when the others have ended, or redeliver the wakeup after a delay",
	}
}
