package dynamostore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
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
