package sqlitelane

import (
	"cmp"
	"context"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// acquisition converts the result of a commit into that of a claim or reservation.
func acquisition(commit *lane.Commit, err error) (*lane.Acquisition, error) {
	if err != nil {
		return embedded.Lost(err)
	}
	return &lane.Acquisition{Outcome: lane.Acquired, Commit: commit}, nil
}

// ClaimRunLease gives a worker the run if it is runnable at c.At. In a handler of an ordered queue's wakeup, the
// wakeup must still belong to this process.
func (s *Storage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	var pace lane.Pace
	got, err := acquisition(s.commit(ctx, &c.Transition, lane.InitialOutbox{}, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			known := e.known()
			if err := embedded.JudgeClaim(known, c); err != nil {
				return err
			}
			if holds, err := t.stillHolds(ctx, e.Run.ID); err != nil || !holds {
				return cmp.Or(err, error(embedded.LostRace(lane.LostEligibility)))
			}
			woken := e.Answers(known, c)
			todo.woken = &woken
			err := t.judgeSlotOfClaim(e, c, todo)
			pace = todo.pace
			return err
		},
	}))
	if err == nil && got.Outcome == lane.Acquired {
		got.Pace = pace
	}
	return got, err
}

// HeartbeatRunLease extends the owner's lease.
func (s *Storage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return s.commit(ctx, &c.Transition, lane.InitialOutbox{}, judgment{ownership: func(known *embedded.State) error {
		return embedded.JudgeHeartbeat(known, c)
	}})
}

// ReleaseRunLease verifies that the token no longer owns the run.
func (s *Storage) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	return s.read(ctx, true, func(conn *file.Conn) error {
		e, err := s.readRun(conn, c.Environment, c.RunID)
		return cmp.Or(err, embedded.JudgeRelease(e.known(), c))
	})
}
