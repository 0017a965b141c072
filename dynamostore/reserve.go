package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ReserveRunDispatch implements lane.Storage: it chooses a slot, and the commit takes it for the run.
func (s *Store) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	if c.Projected == nil {
		return nil, c.Validate()
	}
	before, err := s.readAtSequence(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if before == nil {
		s.offers.decline(rows.RunPK(c.Key()))
		return &lane.Acquisition{Outcome: lane.LostSequence}, nil
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if !c.Queue.Bounded() || !c.Reserves() {
		return nil, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			RunID:   c.Projected.ID,
			Message: "a reservation needs a bounded queue and an end",
		}
	}
	if since, ok := before.DispatchableAt(); !ok || since > rows.ToMillis(c.At) {
		return &lane.Acquisition{Outcome: lane.LostEligibility}, nil
	}
	choose := func() (rows.SlotChange, bool, error) {
		until := rows.ToMillis(c.Projected.DispatchExpiresAt)
		return s.chooseSlot(ctx, before.SlotQuery(c.Queue.Concurrency, rows.ToMillis(c.At), until, reservationWindows))
	}
	if c.Queue.Concurrency == 0 {
		choose = func() (rows.SlotChange, bool, error) { return leaveSlot(before), true, nil }
	}
	slot, ok, err := choose()
	if err != nil {
		return nil, err
	}
	if !ok {
		return s.refuse(ctx, before, lane.LostCapacity)
	}
	return s.acquire(
		ctx,
		&rows.Change{Transition: &c.Transition, Before: before, Initial: c.Outbox, Slot: slot},
		choose,
	)
}

// ReleaseRunDispatch implements lane.Storage. It reads the slot first: after a redelivered wakeup it is already gone,
// and a failed condition costs more than a read.
func (s *Store) ReleaseRunDispatch(ctx context.Context, c *lane.ReleaseDispatchCommand) (bool, error) {
	run, err := s.readRun(ctx, c.RunKey)
	until := rows.ToMillis(c.ExpiresAt)
	if err != nil || run == nil || run.Slot == 0 || run.State() != runlane.StatusQueued || run.DispatchExpiresAt != until {
		return false, err
	}
	slot := run.HeldSlot()
	slot.Until = until
	read, err := s.db.Get(ctx, "read slot", slot.PK, slot.SK)
	if err != nil || !slot.Is(read) {
		return false, err
	}
	result, err := s.db.Delete(ctx, "give slot back", read, slot.Unchanged())
	if err != nil || result != ddb.Removed {
		return false, err
	}
	s.offers.recordSlots(run.Partition(), &rows.SlotChange{Delete: &slot}, rows.ToMillis(c.At))
	return true, nil
}
