package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

var errReservationOver = &ddb.TimeLimit{
	Message: "DynamoDB did not answer before the reservation was over",
	Hint:    "try again: the run keeps waiting, and gets a slot anew",
}

// ClaimRunLease implements lane.Storage.
func (s *Store) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	before, err := s.readAtSequence(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if !rows.Claims(&c.Transition) {
		return nil, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			RunID:   c.Projected.ID,
			Message: "a claim carries no run.lease_claimed",
		}
	}
	if since, ok := before.RunnableAt(); !ok || since > rows.ToMillis(c.At) {
		return &lane.Acquisition{Outcome: lane.LostEligibility}, nil
	}
	slot, lost, err := s.claimSlot(ctx, c, before)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		return s.refuse(ctx, before, lost)
	}
	var pace lane.Pace
	if c.Queue.Rated() {
		var ok bool
		if pace, ok, err = s.start(ctx, before.Partition(), c.Queue, c.At); err != nil || !ok {
			return &lane.Acquisition{Outcome: lane.LostRate, Pace: pace}, err
		}
	}
	// The commit succeeds within the reservation that it uses, or fails.
	if slot.Before != nil && slot.Before.Run == c.Projected.ID && slot.Before.Until != 0 &&
		slot.Before.Outlasts(rows.ToMillis(c.At)) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, slot.Before.Until.Time().Sub(c.At), errReservationOver)
		defer cancel()
	}
	var choose func() (rows.SlotChange, bool, error)
	switch {
	case c.Queue.Concurrency == 0: // its reservation is from when there was a limit, and was given back
		choose = func() (rows.SlotChange, bool, error) { return leaveSlot(before), true, nil }
	case c.Slot:
		choose = func() (rows.SlotChange, bool, error) {
			return s.chooseSlot(ctx, before.SlotQuery(c.Queue.Concurrency, rows.ToMillis(c.At), 0, claimWindows))
		}
	}
	got, err := s.acquire(
		ctx,
		&rows.Change{Transition: &c.Transition, Before: before, ByWakeup: c.ByWakeup, Slot: slot},
		choose,
	)
	if err == nil && got.Outcome == lane.Acquired {
		got.Pace = pace
	}
	return got, err
}

// ReleaseRunLease implements lane.Storage.
func (s *Store) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	run, err := s.readRun(ctx, c.RunKey)
	if err != nil {
		return err
	}
	if run == nil {
		return rows.NotFound(c.RunKey)
	}
	if run.LeaseToken == c.LeaseToken {
		return rows.Conflict(runlane.ConflictLeaseOwnership, c.RunID, "the lease is still held")
	}
	return nil
}

// claimSlot chooses the slot change of a claim. lost is why no slot is available, or "".
func (s *Store) claimSlot(
	ctx context.Context, c *lane.ClaimCommand, r *rows.Run,
) (slot rows.SlotChange, lost lane.Outcome, err error) {
	if r.Slot != 0 && r.State() == runlane.StatusRunning {
		return slot, "", nil // held since its last claim
	}
	at := rows.ToMillis(c.At)
	if r.Slot != 0 && r.DispatchExpiresAt != 0 {
		reserved, held := r.HeldSlot(), r.HeldSlot()
		if reserved.Until = r.DispatchExpiresAt; reserved.Outlasts(at) {
			return rows.SlotChange{Put: &held, Before: &reserved}, "", nil
		}
	}
	switch {
	case c.Queue.Concurrency == 0:
		return leaveSlot(r), "", nil
	case !c.Slot:
		return slot, lane.LostReservation, nil
	}
	slot, ok, err := s.chooseSlot(ctx, r.SlotQuery(c.Queue.Concurrency, at, 0, claimWindows))
	if err == nil && !ok {
		lost = lane.LostCapacity
	}
	return slot, lost, err
}

// leaveSlot frees the slot that a run has from when its queue had a limit, unless another run has it by now.
func leaveSlot(r *rows.Run) (slot rows.SlotChange) {
	if r.Slot != 0 {
		own := r.HeldSlot()
		slot = rows.SlotChange{Delete: &own, Optional: true}
	}
	return slot
}

const slotTries = 4

// acquire commits a reservation or a claim; a lost race is an outcome. If another commit took the slot, choose chooses
// another. Without choose the run has lost its own reservation.
func (s *Store) acquire(
	ctx context.Context, c *rows.Change, choose func() (rows.SlotChange, bool, error),
) (*lane.Acquisition, error) {
	for try := 1; ; try++ {
		commit, refused, err := s.commit(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case refused == nil:
			return &lane.Acquisition{Outcome: lane.Acquired, Commit: commit}, nil
		case !refused.OnlySlots():
			if c.Slot.Put != nil {
				s.offers.reopen(c.Before.Partition(), c.Slot.Put.Number())
			}
			return &lane.Acquisition{Outcome: lane.LostSequence}, nil
		case choose == nil:
			return &lane.Acquisition{Outcome: lane.LostReservation}, nil
		}
		slot, ok := rows.SlotChange{}, false
		if try < slotTries {
			if slot, ok, err = choose(); err != nil {
				return nil, err
			}
		}
		if !ok {
			return s.refuse(ctx, c.Before, lane.LostCapacity)
		}
		c.Slot = slot
	}
}

// refuse reports that no slot is available. A run of a full queue gets the marker of slotless runs: its wakeup is
// acknowledged, and a marker from before the queue had a limit may be hours ahead. Two kinds of runs keep their marker:
//
//   - a running run, so that the end of its lease is found;
//   - a run with a dead letter as its latest wakeup: it waits for an operator, and this wakeup is an older one.
func (s *Store) refuse(ctx context.Context, r *rows.Run, lost lane.Outcome) (*lane.Acquisition, error) {
	since, ok := r.DispatchableAt()
	if ok && lost == lane.LostCapacity && r.State() != runlane.StatusRunning && r.Marker().Kind != rows.DeadLetter {
		if err := s.moveMarker(ctx, r, rows.AfterFullQueue(since)); err != nil {
			return nil, err
		}
	}
	return &lane.Acquisition{Outcome: lost}, nil
}

// HeartbeatRunLease implements lane.Storage.
func (s *Store) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	if token := heartbeatToken(c); token != "" {
		return s.AppendRunEvents(ctx, &lane.AppendCommand{Transition: c.Transition, LeaseToken: token})
	}
	if _, err := s.readExpected(ctx, &c.Transition); err != nil {
		return nil, err
	}
	return nil, &runlane.Error{
		Code:    runlane.ErrContractViolation,
		RunID:   c.Projected.ID,
		Message: "a heartbeat is one run.lease_heartbeat under the token of its run",
	}
}

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
