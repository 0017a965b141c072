package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ClaimRunLease gives a worker the run when it is runnable at c.At.
func (s *Storage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	return acquisition(s.commit(&c.Transition, lane.InitialOutbox{}, nil, func(env *environment, e *entry) error {
		if err := judgeClaim(e, c); err != nil {
			return err
		}
		if err := env.claimSlot(e, c); err != nil {
			return err
		}
		e.woken = e.wakeupOf(c)
		return nil
	}))
}

// judgeClaim checks the form of a claim, then whether the run may be taken.
func judgeClaim(e *entry, c *lane.ClaimCommand) error {
	p := c.Projected
	lease, ok := c.Events[0].Body.(*runlane.RunLeaseClaimed)
	switch {
	case e == nil || !ok || p.Status != runlane.StatusRunning:
		return embedded.Violation(p.ID, "a claim begins with run.lease_claimed and leaves the run running")
	case lease.Lease.Token == "" || lease.Lease.Token != p.Lease.Token || lease.Lease.WorkerID != p.Lease.WorkerID:
		return embedded.Violation(p.ID, "the claimed lease is not that of the projected run")
	case c.Slot && !c.Queue.Bounded():
		return embedded.Violation(p.ID, "a slot of queue %q, which is not bounded", p.Queue)
	}
	for _, ev := range c.Events[1:] {
		if ev.Type() != runlane.EventStarted {
			return embedded.Violation(p.ID, "a claim carries %s besides run.lease_claimed", ev.Type())
		}
	}
	if !e.runnable(embedded.At(c.At)) {
		return lostRace(lane.LostEligibility)
	}
	return nil
}

// runnable reports whether a worker may take the run at now.
func (e *entry) runnable(now embedded.Millis) bool {
	at, ok := e.runnableAt()
	return ok && at <= now
}

// HeartbeatRunLease extends the lease of its owner.
func (s *Storage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	r, err := s.commit(&c.Transition, lane.InitialOutbox{}, func(e *entry) error {
		if len(c.Events) != 1 || e == nil {
			return embedded.Violation(c.Projected.ID, "a heartbeat is one run.lease_heartbeat of an existing run")
		}
		beat, ok := c.Events[0].Body.(*runlane.RunLeaseHeartbeat)
		switch {
		case !ok:
			return embedded.Violation(c.Projected.ID, "a heartbeat is one run.lease_heartbeat of an existing run")
		case beat.Lease.Token == "" || beat.Lease.Token != e.state.leaseToken:
			return embedded.Conflict(runlane.ConflictLeaseOwnership, e.id, "the lease no longer belongs to this worker")
		case beat.Lease.Token != c.Projected.Lease.Token:
			return embedded.Violation(c.Projected.ID, "the heartbeat's lease is not that of the projected run")
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return &r.commit, nil
}

// ReleaseRunLease verifies that the token no longer owns the run.
func (s *Storage) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if c.LeaseToken == "" {
		return embedded.Violation(c.RunID, "a release names the lease's token")
	}
	h, env := s.lockRun(c.Environment, c.RunID)
	defer h.unlock()
	e := env.run(c.RunID)
	switch {
	case e == nil:
		return embedded.NotFound(c.RunID)
	case e.unpacked != nil && e.state.leaseToken == c.LeaseToken:
		return embedded.Conflict(
			runlane.ConflictLeaseOwnership,
			e.id,
			"the lease is still held: append the attempt's outcome first",
		)
	default:
		return nil
	}
}
