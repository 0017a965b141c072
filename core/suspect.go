package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// A run whose last attempt was abandoned is a suspect: it may have killed its worker. In one process no attempt of a
// suspect is executed beside another suspect's, and in a Lambda invocation beside no other attempt
// (docs/internals/design.md, Leases and workers).

const (
	// suspectAgain is about how long a wakeup is delayed whose run has to wait for another suspect to end.
	suspectAgain = 30 * time.Second
	// suspectTime is how long a worker executes no second suspect beside one. A suspect that lives that long does not
	// kill its worker as soon as it begins, and attempts of hours whose worker lost power need not be executed one
	// after the other.
	suspectTime = time.Minute
)

// suspect ensures that a suspect is not executed beside attempts that it could end with its process. It says why the
// run is not executed now. Call release when the attempt is over.
func (d *delivery) suspect(
	ctx context.Context, run *runlane.Run, at time.Time,
) (release func(), ignored Ignored, err error) {
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
	select {
	case d.suspects <- struct{}{}:
		return d.releaseSuspect(), "", nil
	default:
	}
	if !d.byWakeup {
		// The poller reads this run again later. Nothing may wait between reading a run and claiming it.
		return nil, IgnoredSuspect, nil
	}
	wait := d.rt.world.around(suspectAgain)
	if !d.rt.canDelay(run.Queue, wait) {
		return nil, "", suspected(run.ID)
	}
	return nil, IgnoredSuspect, d.rt.sendDelayed(ctx, d.rt.delayedWakeup(run, wait))
}

// releaseSuspect lets the worker's next suspect begin: when this one's attempt has ended, or after suspectTime.
func (d *delivery) releaseSuspect() func() {
	release := sync.OnceFunc(func() { <-d.suspects })
	timer := time.AfterFunc(suspectTime, release)
	return func() {
		timer.Stop()
		release()
	}
}

// Suspect reports that the run's last attempt ended without an outcome, so that [Runtime.ExecuteDelivery] does not
// execute it beside others (DeliveryOptions.Beside). It reads the run and writes nothing. A run that does not exist is
// no suspect. A bridge calls it for wakeups that come again, to execute suspects before other runs use the time that
// they need. Errors are those of the storage.
func (rt *Runtime) Suspect(ctx context.Context, id runlane.RunID) (bool, error) {
	if err := rt.gate.enter(); err != nil {
		return false, err
	}
	defer rt.gate.leave()
	run, err := rt.storage().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: id})
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
		Message:   "the run's last attempt ended without an outcome: it is not executed beside others",
		Hint:      "execute it when the others have ended, or hand the wakeup back with a delay",
	}
}
