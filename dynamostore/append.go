package dynamostore

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// AppendRunEvents implements lane.Storage.
func (s *Store) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	if c.Creates() {
		return s.create(ctx, c)
	}
	before, err := s.expected(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if c.LeaseToken != "" && before.LeaseToken != c.LeaseToken {
		return nil, rows.LeaseLost(c.Key())
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	change := &rows.Change{
		Transition: &c.Transition,
		Before:     before,
		LeaseToken: c.LeaseToken,
		Initial:    c.Outbox,
	}
	if c.Look != nil {
		change.Missing = c.Look.Calls
		if c.Look.Signals >= 0 {
			change.Looked = &c.Look.Signals
		}
	}
	commit, refused, err := s.commit(ctx, change)
	if err != nil || refused == nil {
		return commit, err
	}
	if refused.Run() == nil && refused.Counted() {
		return nil, lane.Moved(c.Projected.ID)
	}
	err = s.raceLost(ctx, &c.Transition, c.LeaseToken, refused)
	if current := refused.Run(); current != nil && errors.Is(err, runlane.ErrStorageUnavailable) &&
		change.Mailed(current) {
		return nil, lane.Moved(c.Projected.ID) // neither sequence nor lease
	}
	return nil, err
}

// HeartbeatRunLease implements lane.Storage.
func (s *Store) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	if token := heartbeatToken(c); token != "" {
		return s.AppendRunEvents(ctx, &lane.AppendCommand{Transition: c.Transition, LeaseToken: token})
	}
	if _, err := s.expected(ctx, &c.Transition); err != nil {
		return nil, err
	}
	return nil, &runlane.Error{
		Code:    runlane.ErrContractViolation,
		RunID:   c.Projected.ID,
		Message: "a heartbeat is one run.lease_heartbeat under the token of its run",
	}
}

// heartbeatToken is the token of a command that is a heartbeat and nothing else.
func heartbeatToken(c *lane.HeartbeatCommand) string {
	if len(c.Events) != 1 {
		return ""
	}
	beat, ok := c.Events[0].Body.(*runlane.RunLeaseHeartbeat)
	if !ok || beat == nil || beat.Lease.Token != c.Projected.Lease.Token {
		return ""
	}
	return beat.Lease.Token
}

// expected is the run at the transition's sequence, or the conflict.
func (s *Store) expected(ctx context.Context, t *lane.Transition) (*rows.Run, error) {
	before, err := s.snapshot(ctx, t)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, rows.Conflict(
			runlane.ConflictEventSequence,
			t.Projected.ID,
			"the run does not exist; sequence %d was expected",
			t.ExpectedSequence,
		)
	}
	if !before.ExpectedBy(t) {
		return nil, rows.SequenceConflict(t, before.Sequence)
	}
	return before, nil
}

// raceLost tells from the old images which race was lost: sequence first, then the lease.
func (s *Store) raceLost(ctx context.Context, t *lane.Transition, leaseToken string, refused *rows.Refusal) error {
	current := refused.Run()
	switch {
	case current == nil:
		run, err := s.readRun(ctx, t.Key())
		if err != nil {
			return err
		}
		if run == nil {
			return rows.SequenceConflict(t, 0)
		}
		return rows.SequenceConflict(t, run.Sequence)
	case item.Number(current["sq"]) != t.ExpectedSequence || !rows.SameRun(t, current):
		return rows.SequenceConflict(t, item.Number(current["sq"]))
	case leaseToken != "" && item.TextOf(current["lt"]) != leaseToken:
		return rows.LeaseLost(t.Key())
	default:
		return &runlane.Error{
			Code:      runlane.ErrStorageUnavailable,
			RunID:     t.Projected.ID,
			Message:   "the run's marker changed at each try",
			Retryable: true,
			Hint:      "try again",
			Meta:      map[string]string{"outcome": "not committed"},
		}
	}
}

// CheckOutput implements lane.OutputChecker.
func (s *Store) CheckOutput(run runlane.RunID, output []byte) error {
	if len(output) <= rows.MaxOutputBytes {
		return nil
	}
	_, _, err := rows.PutOutput(run, output)
	return err
}

// CheckPayload implements lane.OutputChecker.
func (s *Store) CheckPayload(run runlane.RunID, payload []byte) error {
	return rows.CheckPayload(run, payload)
}
