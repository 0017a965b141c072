package memlane

import (
	"context"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ClaimRunLease gives a worker the run if it is runnable at c.At.
func (s *Storage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	var pace lane.Pace
	got, err := acquisition(s.commit(&c.Transition, lane.InitialOutbox{}, nil, func(env *environment, e *entry) error {
		if err := embedded.JudgeClaim(e.known(), c); err != nil {
			return err
		}
		if err := env.claimSlot(e, c); err != nil {
			return err
		}
		if c.Queue.Rated() {
			pace = *env.pace(e.partitionKey(), c.At)
		}
		e.outbox.Woken = e.outbox.Answers(e.known(), c)
		return nil
	}))
	if c.Queue.Rated() && err == nil && got.Outcome == lane.Acquired {
		got.Pace = pace
	}
	return got, err
}

// HeartbeatRunLease extends the owner's lease.
func (s *Storage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	r, err := s.commit(&c.Transition, lane.InitialOutbox{}, func(known *embedded.State) error {
		return embedded.JudgeHeartbeat(known, c)
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
	h, env := s.lockRun(c.Environment, c.RunID)
	defer h.unlock()
	e := env.run(c.RunID)
	if e != nil && e.unpacked == nil { // finished, so without a lease
		return embedded.JudgeRelease(&embedded.State{}, c)
	}
	return embedded.JudgeRelease(e.known(), c)
}
