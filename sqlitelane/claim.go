package sqlitelane

import (
	"cmp"
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// lostRace is a race that a claim or a reservation lost. It never leaves the package as an error.
type lostRace lane.Outcome

func (l lostRace) Error() string { return string(l) }

// acquisition turns the end of a commit into the answer of a claim or a reservation.
func acquisition(commit *lane.Commit, err error) (*lane.Acquisition, error) {
	if err == nil {
		return &lane.Acquisition{Outcome: lane.Acquired, Commit: commit}, nil
	}
	if lost, ok := errors.AsType[lostRace](err); ok {
		return &lane.Acquisition{Outcome: lane.Outcome(lost)}, nil
	}
	if errors.Is(err, runlane.ConflictEventSequence) {
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	return nil, err
}

// ClaimRunLease gives a worker the run when it is runnable at c.At. Within a handler of an ordered queue's wakeup it
// does so only while that is this process's.
func (s *Storage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return acquisition(s.commit(ctx, &c.Transition, lane.InitialOutbox{}, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			if err := judgeClaim(e, c); err != nil {
				return err
			}
			if holds, err := t.holds(ctx, e.Run.ID); err != nil || !holds {
				return cmp.Or(err, error(lostRace(lane.LostEligibility)))
			}
			woken := e.Answers(c)
			todo.woken = &woken
			return t.judgeSlotOfClaim(e, c, todo)
		},
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
	if since, ok := e.RunnableAt(); !ok || since > embedded.At(c.At) {
		return lostRace(lane.LostEligibility)
	}
	return nil
}

// HeartbeatRunLease extends the lease of its owner.
func (s *Storage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return s.commit(ctx, &c.Transition, lane.InitialOutbox{}, judgment{ownership: func(e *entry) error {
		malformed := embedded.Violation(c.Projected.ID, "a heartbeat is one run.lease_heartbeat of an existing run")
		if len(c.Events) != 1 || e == nil {
			return malformed
		}
		beat, ok := c.Events[0].Body.(*runlane.RunLeaseHeartbeat)
		switch {
		case !ok:
			return malformed
		case beat.Lease.Token == "" || beat.Lease.Token != e.Run.Lease.Token:
			return embedded.Conflict(runlane.ConflictLeaseOwnership, e.Run.ID, "the lease no longer belongs to this worker")
		case beat.Lease.Token != c.Projected.Lease.Token:
			return embedded.Violation(c.Projected.ID, "the heartbeat's lease is not that of the projected run")
		default:
			return nil
		}
	}})
}

// ReleaseRunLease verifies that the token no longer owns the run.
func (s *Storage) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if c.LeaseToken == "" {
		return embedded.Violation(c.RunID, "a release names the lease's token")
	}
	return s.read(ctx, true, func(conn *file.Conn) error {
		e, err := s.look(conn, c.Environment, c.RunID)
		switch {
		case err != nil:
			return err
		case e == nil:
			return embedded.NotFound(c.RunID)
		case e.Run.Lease.Token == c.LeaseToken:
			return embedded.Conflict(runlane.ConflictLeaseOwnership, c.RunID,
				"the lease is still held: append the attempt's outcome first")
		default:
			return nil
		}
	})
}
