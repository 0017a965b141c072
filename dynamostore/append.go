package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
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
		return nil, leaseLost(c.Key())
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	commit, refused, err := s.commit(ctx, &change{Transition: &c.Transition, before: before, leaseToken: c.LeaseToken, birth: c.Outbox})
	if err != nil || refused == nil {
		return commit, err
	}
	return nil, s.classify(ctx, &c.Transition, c.LeaseToken, refused)
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
		Code: runlane.ErrContractViolation, RunID: c.Projected.ID, Message: "a heartbeat is one run.lease_heartbeat under the token of its run",
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
func (s *Store) expected(ctx context.Context, t *lane.Transition) (*runItem, error) {
	before, err := s.snapshot(ctx, t.Key(), t.ExpectedSequence)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, conflict(runlane.ConflictEventSequence, t.Projected.ID, "the run does not exist; sequence %d was expected", t.ExpectedSequence)
	}
	if before.Sequence != t.ExpectedSequence {
		return nil, sequenceConflict(t, before.Sequence)
	}
	return before, nil
}

// classify names the race from the old images: sequence first, then the lease.
func (s *Store) classify(ctx context.Context, t *lane.Transition, leaseToken string, refused *refusal) error {
	current := refused.run()
	switch {
	case current == nil:
		run, err := s.readRun(ctx, t.Key())
		if err != nil {
			return err
		}
		if run == nil {
			return sequenceConflict(t, 0)
		}
		return sequenceConflict(t, run.Sequence)
	case number(current["sq"]) != t.ExpectedSequence:
		return sequenceConflict(t, number(current["sq"]))
	case leaseToken != "" && textOf(current["lt"]) != leaseToken:
		return leaseLost(t.Key())
	default:
		return &runlane.Error{
			Code: runlane.ErrStorageUnavailable, RunID: t.Projected.ID, Message: "the run's marker kept moving", Retryable: true,
			Hint: "try again", Meta: map[string]string{"outcome": "not committed"},
		}
	}
}

func sequenceConflict(t *lane.Transition, actual int64) error {
	return conflict(runlane.ConflictEventSequence, t.Projected.ID, "the run is at sequence %d, not %d", actual, t.ExpectedSequence)
}

func leaseLost(key lane.RunKey) error {
	return conflict(runlane.ConflictLeaseOwnership, key.RunID, "the lease belongs to somebody else")
}

// errReservationOver ends a claim whose commit could not fall into the reservation any more that it was made for.
var errReservationOver = &TimeLimit{
	Message: "DynamoDB did not answer before the reservation was over", Hint: "try again: the run keeps waiting, and gets a slot anew",
}

// ClaimRunLease implements lane.Storage.
func (s *Store) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	before, err := s.snapshot(ctx, c.Key(), c.ExpectedSequence)
	if err != nil {
		return nil, err
	}
	if before == nil || before.Sequence != c.ExpectedSequence {
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if !claims(&c.Transition) {
		return nil, &runlane.Error{Code: runlane.ErrContractViolation, RunID: c.Projected.ID, Message: "a claim carries no run.lease_claimed"}
	}
	if since, ok := before.runnable(); !ok || since > toMillis(c.At) {
		return &lane.Acquisition{Outcome: lane.LostEligibility}, nil
	}
	slot, lost, err := s.claimSlot(ctx, c, before)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		return s.refuse(ctx, before, lost)
	}
	// The commit falls into the reservation of which it takes the slot, or fails.
	if slot.before != nil && slot.before.Run == c.Projected.ID && slot.before.Until != 0 && slot.before.outlasts(toMillis(c.At)) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, slot.before.Until.time().Sub(c.At), errReservationOver)
		defer cancel()
	}
	var take func() (slotChange, bool, error)
	if c.Slot {
		take = func() (slotChange, bool, error) {
			return s.takeSlot(ctx, before, c.Queue.Concurrency, toMillis(c.At), 0, claimWindows)
		}
	}
	return s.acquire(ctx, &change{Transition: &c.Transition, before: before, byWakeup: c.ByWakeup, slot: slot}, take)
}

// ReleaseRunLease implements lane.Storage.
func (s *Store) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	run, err := s.readRun(ctx, c.RunKey)
	if err != nil {
		return err
	}
	if run == nil {
		return notFound(c.RunKey)
	}
	if run.LeaseToken == c.LeaseToken {
		return conflict(runlane.ConflictLeaseOwnership, c.RunID, "the lease is still held")
	}
	return nil
}
