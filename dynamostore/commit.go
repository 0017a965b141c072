package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// commit writes a change: what it needs is read, then all is built, then written, all or none. Conditions that fail are returned for the
// caller to judge; a marker that was moved meanwhile is no conflict for the caller and is repeated here on the item as it is now.
func (s *Store) commit(ctx context.Context, c *change) (*lane.Commit, *refusal, error) {
	const maxMarkerRaces = 8
	c.Transition = atRest(c.Transition)
	for race := 1; ; race++ {
		if err := s.readFor(ctx, c); err != nil {
			return nil, nil, err
		}
		built, err := build(c)
		if err != nil {
			return nil, nil, err
		}
		lost, err := s.db.Transact(ctx, &Transaction{
			Operation: string(c.Events[len(c.Events)-1].Type()), Token: c.id, Writes: built.writes, Version: "sq", Proof: built.log.proof(),
		})
		if err != nil {
			return nil, nil, err
		}
		if len(lost) == 0 {
			s.snapshots.put(built.run.PK, built.run)
			s.offers.follow(c, built)
			return built.commit(c), nil, nil
		}
		refused := built.refusal(lost)
		if refused.onlySlots() && built.slot.optional {
			c.withoutSlot = true
			continue
		}
		current := refused.run()
		if current == nil || race == maxMarkerRaces || !c.onlyMarkerMoved(current) {
			return nil, refused, nil
		}
		if c.before, err = unmarshalRun(current); err != nil {
			return nil, nil, err
		}
	}
}

// readFor reads what building a change needs beside the run: the numbers of shards, and since when the wakeup that a new one replaces has
// been on its way. Every commit has another id.
func (s *Store) readFor(ctx context.Context, c *change) (err error) {
	c.id, c.claim = randomID(), randomID()
	if c.shards, err = s.shardCounts(ctx, c.Projected.Environment); err != nil {
		return err
	}
	c.firstSent = 0
	if c.before == nil || c.before.status() != runlane.StatusQueued || c.before.DeliveryLog == 0 || !c.requestsDelivery() {
		return nil
	}
	row, err := s.readDelivery(ctx, c.Key(), c.before.DeliveryLog, c.before.DeliveryIndex)
	if err == nil && row != nil {
		c.firstSent = row.FirstSent
	}
	return err
}
