package dynamostore

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

const maxOwnerRounds = 3

// create commits a new run with its owners. Idempotency is checked before the run's own id, and the id before
// singleton.
func (s *Store) create(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := c.Validate(); err != nil {
		if run, readErr := s.readRun(ctx, c.Key()); readErr == nil && run != nil {
			return nil, rows.SequenceConflict(&c.Transition, run.Sequence)
		}
		return nil, err
	}
	owners := s.ownersFor(c)
	slot, err := s.creationSlot(ctx, c)
	if err != nil {
		return nil, s.ownedFirst(ctx, owners, err)
	}
	for round := 1; ; round++ {
		commit, refused, err := s.commit(ctx, &rows.Change{
			Transition: &c.Transition,
			Initial:    c.Outbox,
			Owners:     owners,
			Slot:       slot,
			Flow:       c.Flow,
		})
		if err != nil || refused == nil {
			return commit, err
		}
		if refused.OnlySlots() {
			return nil, noCapacity(c)
		}
		exists := refused.Run()
		for i := range owners {
			old, failed := refused.Owner(i)
			if old == nil {
				if failed {
					owners[i].Replaces = item.Condition{} // removed meanwhile
				}
				continue
			}
			if rows.IsSingleton(owners[i]) && exists != nil {
				break
			}
			holder, live, err := s.resolve(ctx, old)
			if err != nil {
				return nil, err
			}
			if live != nil && holder.Run != c.Projected.ID {
				return nil, rows.OwnerConflict(owners[i], holder.Run)
			}
			owners[i].Replaces = holder.Unchanged()
		}
		if exists != nil {
			return nil, rows.SequenceConflict(&c.Transition, item.Number(exists["sq"]))
		}
		if refused.Counted() {
			return nil, c.Flow.Closed(c.Projected.ID)
		}
		if round == maxOwnerRounds {
			return nil, &runlane.Error{
				Code:      runlane.ErrStorageUnavailable,
				RunID:     c.Projected.ID,
				Message:   "the owner of a key changed at each try",
				Retryable: true,
				Hint:      "try again",
				Meta:      map[string]string{"outcome": "not committed"},
			}
		}
	}
}

// creationSlot chooses the slot of a creation that carries a reservation, or that starts at once on a bounded queue.
func (s *Store) creationSlot(ctx context.Context, c *lane.AppendCommand) (rows.SlotChange, error) {
	if !c.Queue.Bounded() || !lane.HoldsSlot(c.Projected) {
		return rows.SlotChange{}, nil
	}
	limited := ctx
	if c.Reserves() { // the run can wait without a slot: the rest of the caller's time is for the commit
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.db.Timeout/slotPatience)
		defer cancel()
	}
	slot, ok, err := s.chooseSlot(limited, rows.CreationSlotQuery(c.Projected, c.Queue.Concurrency, creationWindows))
	switch {
	case err == nil && !ok:
		return slot, noCapacity(c)
	case err != nil && c.Reserves() && ctx.Err() == nil && !errors.Is(err, runlane.ErrInvariantViolation):
		// Not for slots of a newer format, which are an invariant violation.
		full := noCapacity(c)
		full.Cause = err
		return slot, full
	}
	slot.Yields = c.Reserves()
	return slot, err
}

// slotPatience divides a request's time: a creation with a reservation spends this part on finding a slot.
const slotPatience = 4

// ownedFirst returns the conflict on a key, if there is one, instead of a full queue: keys are checked first.
func (s *Store) ownedFirst(ctx context.Context, owners []rows.Owner, full error) error {
	for _, owner := range owners {
		raw, err := s.db.Get(ctx, "read owner", owner.PK, rows.OwnerSK)
		if err != nil {
			return err
		}
		if raw == nil {
			continue
		}
		holder, live, err := s.resolve(ctx, raw)
		if err != nil {
			return err
		}
		if live != nil && holder.Run != owner.Run {
			return rows.OwnerConflict(owner, holder.Run)
		}
	}
	return full
}

func noCapacity(c *lane.AppendCommand) *runlane.Error {
	return rows.Conflict(runlane.ConflictQueueCapacity, c.Projected.ID, "queue %q has no free slot", c.Queue.Name)
}
