package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// heartbeatsPerLease is how often an owner renews during one lease.
	heartbeatsPerLease = 3
	// readInterval is how often an attempt without heartbeats reads its run, to notice a cancellation.
	readInterval = 5 * time.Second
	// beatTime bounds one heartbeat: a finished outcome waits for a heartbeat in progress.
	beatTime = 5 * time.Second
	// beatRounds is how often one heartbeat is tried while other writers change the run.
	beatRounds = 3
)

// nextBeat is jittered, so that attempts that started together do not write together.
func (x *execution) nextBeat() time.Duration {
	if x.rules.bounded() {
		return x.rt.world.around(readInterval)
	}
	return x.rt.world.around(x.rules.lease / heartbeatsPerLease)
}

// stopWatching ends the heartbeats, waits for one in progress, and returns the run as it left it.
func (x *execution) stopWatching() *runlane.Run {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	return x.run
}

// beat renews the lease, or reads the run if leases are not renewed. Only a lost lease or a requested cancellation
// affects the handler. When the storage is unreachable, it tries again: the token decides who owns the run.
func (x *execution) beat() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	limited := new(detachedContext).start(x.ctx, beatTime)
	defer limited.stop()
	next := x.nextBeat()
	if err := x.keep(limited); err != nil {
		next /= 4
		x.rt.logger.LogAttrs(
			limited,
			slog.LevelWarn,
			"lease was not renewed",
			append(runAttrs(x.started), errorAttrs(err)...)...,
		)
	}
	if !x.lost.Load() {
		x.set.beatLater(x, next)
	}
}

func (x *execution) keep(ctx context.Context) error {
	if x.rules.bounded() {
		current, err := x.reread(ctx)
		if err == nil {
			x.observe(current)
		}
		return err
	}
	var err error
	for range beatRounds {
		if err = x.renew(ctx); err == nil {
			return nil
		}
		if !isConflict(err, runlane.ConflictEventSequence) && !isConflict(err, runlane.ConflictLeaseOwnership) {
			return err
		}
		current, readErr := x.reread(ctx)
		if readErr != nil {
			return readErr
		}
		if x.observe(current); x.lost.Load() {
			return nil
		}
	}
	return err
}

func (x *execution) renew(ctx context.Context) error {
	at := x.rt.now()
	lease := runlane.Lease{Token: x.token, WorkerID: x.workerID, ExpiresAt: at.Add(x.rules.lease)}
	event := runlane.Event{
		RunID:       x.run.ID,
		Environment: x.rt.environment,
		OccurredAt:  at,
		Actor:       x.actor(),
		Body:        &runlane.RunLeaseHeartbeat{Lease: lease},
	}
	events := []runlane.Event{event}
	transition, err := x.rt.transition(x.run, events)
	if err != nil {
		return err
	}
	if _, err = x.rt.storage().HeartbeatRunLease(ctx, &lane.HeartbeatCommand{Transition: transition}); err != nil {
		return err
	}
	x.run = transition.Projected
	return nil
}

// observe takes over the stored state, under the lock.
func (x *execution) observe(current *runlane.Run) {
	own := x.ownRun(current, x.run.Payload)
	if own == nil {
		x.lost.Store(true)
		x.end(runlane.ErrLeaseLost)
		return
	}
	x.run = own
	if own.Status == runlane.StatusCancellationRequested {
		x.end(runlane.ErrCancelRequested)
	}
}

// ownRun returns current if this attempt still owns it, else nil. The payload never changes and is not read again.
func (x *execution) ownRun(current *runlane.Run, payload []byte) *runlane.Run {
	if current == nil || current.Lease.Token != x.token {
		return nil
	}
	if !current.Status.Owned() {
		return nil
	}
	current.Payload = payload
	return current
}

// reread returns the stored run without its payload; nil if it is gone.
func (x *execution) reread(ctx context.Context) (*runlane.Run, error) {
	runs, err := x.rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment: x.rt.environment, IDs: []runlane.RunID{x.started.ID}, WithoutPayload: true,
	})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return runs[0], nil
}

// leaseLeft bounds the writing of an outcome: after the lease another worker may own the run.
func (x *execution) leaseLeft(run *runlane.Run) time.Duration {
	return max(run.Lease.ExpiresAt.Sub(x.rt.world.Now()), commitTime)
}
