package dynamostore

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// commit writes a change: it reads what it needs, then builds everything, then writes all or nothing. Failed conditions
// are returned to the caller. A marker that moved meanwhile is no conflict for the caller: the write is repeated here
// on the item as it is now.
func (s *Store) commit(ctx context.Context, c *rows.Change) (*lane.Commit, *rows.Refusal, error) {
	const maxMarkerRaces = 8
	c.Transition = rows.AtRest(c.Transition)
	for race := 1; ; race++ {
		if err := s.readFor(ctx, c); err != nil {
			return nil, nil, err
		}
		built, err := rows.Build(c)
		if err != nil {
			return nil, nil, err
		}
		lost, err := s.db.Transact(ctx, &ddb.Transaction{
			Operation: string(c.Events[len(c.Events)-1].Type()),
			Token:     c.ID,
			Writes:    built.Writes,
			Version:   "sq",
			Proof:     built.Proof,
		})
		if err != nil {
			return nil, nil, err
		}
		if len(lost) == 0 {
			s.remember(c, built)
			return built.Result(c), nil, nil
		}
		refused := built.Refusal(lost)
		if refused.OnlySlots() && built.Slot.Optional {
			c.WithoutSlot = true
			continue
		}
		current := refused.Run()
		if current == nil || race == maxMarkerRaces || !c.OnlyMarkerMoved(current) {
			return nil, refused, nil
		}
		if c.Before, err = rows.UnmarshalRun(current); err != nil {
			return nil, nil, err
		}
	}
}

// readFor reads what building a change needs besides the run: the numbers of shards, and when the wakeup that a new one
// replaces was first sent. Every commit gets a new id.
func (s *Store) readFor(ctx context.Context, c *rows.Change) (err error) {
	c.ID, c.ClaimToken = randomID(), randomID()
	if c.Shards, err = s.shardCounts(ctx, c.Projected.Environment); err != nil {
		return err
	}
	c.FirstSent = 0
	if !c.Replaces() {
		return nil
	}
	row, err := s.readDelivery(ctx, c.Key(), c.Before.DeliveryLog, c.Before.DeliveryIndex)
	if err == nil && row != nil {
		c.FirstSent = row.FirstSent
	}
	return err
}

// randomID is 128 bits in hex: commit ids (also the request token, at most 36 characters) and claim tokens.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// slotTries is how often a commit tries to get a slot when other commits took the chosen ones first.
const slotTries = 4

// acquire commits a reservation or a claim; a lost race is an outcome. choose is called for another slot when another
// commit took the chosen one first; without choose, the run's own reservation is lost.
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
				s.offers.again(c.Before.Partition(), c.Slot.Put.Number())
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

// refuse reports that no slot is available. A run whose queue is full is marked as waiting for a slot: its wakeup is
// acknowledged, and a marker from before the queue got its limit may lie hours ahead. Two kinds of runs keep their
// marker:
//
//   - a running run, so that the end of its lease is found;
//   - a run whose latest wakeup is a dead letter: it waits for an operator, and this wakeup is an older one.
func (s *Store) refuse(ctx context.Context, r *rows.Run, lost lane.Outcome) (*lane.Acquisition, error) {
	since, ok := r.DispatchableAt()
	if ok && lost == lane.LostCapacity && r.State() != runlane.StatusRunning && r.Marker().Kind != rows.DeadLetter {
		if err := s.moveMarker(ctx, r, rows.Marker{Kind: rows.Slotless, At: since}); err != nil {
			return nil, err
		}
	}
	return &lane.Acquisition{Outcome: lost}, nil
}
