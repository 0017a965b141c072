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
	before, err := s.readExpected(ctx, &c.Transition)
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
	err = s.raceError(ctx, &c.Transition, c.LeaseToken, refused)
	if current := refused.Run(); current != nil && errors.Is(err, runlane.ErrStorageUnavailable) &&
		change.Mailed(current) {
		return nil, lane.Moved(c.Projected.ID) // only a signal came
	}
	return nil, err
}

// readExpected reads the run at the transition's sequence, or returns the conflict.
func (s *Store) readExpected(ctx context.Context, t *lane.Transition) (*rows.Run, error) {
	before, err := s.readSnapshot(ctx, t)
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

// raceError is the conflict of a refused commit: the sequence first, then the lease.
func (s *Store) raceError(ctx context.Context, t *lane.Transition, leaseToken string, refused *rows.Refusal) error {
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

// create commits a new run with its owners. It checks the idempotency key first, then the run's ID, then the singleton
// key.
func (s *Store) create(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := c.Validate(); err != nil {
		if run, readErr := s.readRun(ctx, c.Key()); readErr == nil && run != nil {
			return nil, rows.SequenceConflict(&c.Transition, run.Sequence)
		}
		return nil, err
	}
	writes, err := s.checkWrites(c)
	if err != nil {
		return nil, err
	}
	owners := s.ownersFor(c)
	slot, err := s.creationSlot(ctx, c)
	if err != nil {
		return nil, s.checkOwnersFirst(ctx, owners, err)
	}
	for round := 1; ; round++ {
		commit, refused, err := s.commit(ctx, &rows.Change{
			Transition: &c.Transition,
			Initial:    c.Outbox,
			Owners:     owners,
			Slot:       slot,
			Flow:       c.Flow,
			Beside:     writes,
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
			holder, live, err := s.resolveOwner(ctx, old)
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

// creationSlot chooses the slot of a creation with a reservation, or of one that starts at once on a bounded queue.
func (s *Store) creationSlot(ctx context.Context, c *lane.AppendCommand) (rows.SlotChange, error) {
	if c.Queue.Rated() && c.Projected.Status.Owned() {
		p := rows.CreationSlotQuery(c.Projected, 0, 0).Partition
		if _, ok, err := s.start(ctx, p, c.Queue, c.Projected.UpdatedAt); err != nil {
			return rows.SlotChange{}, err
		} else if !ok {
			return rows.SlotChange{}, noCapacity(c)
		}
	}
	if c.Queue.Concurrency == 0 || !lane.HoldsSlot(c.Projected) {
		return rows.SlotChange{}, nil
	}
	limited := ctx
	if c.Reserves() { // the run can wait without a slot; the commit needs the rest of the time
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.db.Timeout/slotPatience)
		defer cancel()
	}
	slot, ok, err := s.chooseSlot(limited, rows.CreationSlotQuery(c.Projected, c.Queue.Concurrency, creationWindows))
	switch {
	case err == nil && !ok:
		return slot, noCapacity(c)
	case err != nil && c.Reserves() && ctx.Err() == nil && !errors.Is(err, runlane.ErrInvariantViolation):
		// Slots of a newer format are an invariant violation, which is returned.
		full := noCapacity(c)
		full.Cause = err
		return slot, full
	}
	slot.Yields = c.Reserves()
	return slot, err
}

// slotPatience divides a request's time: a creation with a reservation spends this part on finding a slot.
const slotPatience = 4

// checkOwnersFirst returns the conflict on a key, if any, instead of a full queue: keys are checked first.
func (s *Store) checkOwnersFirst(ctx context.Context, owners []rows.Owner, full error) error {
	for _, owner := range owners {
		raw, err := s.db.Get(ctx, "read owner", owner.PK, rows.OwnerSK)
		if err != nil {
			return err
		}
		if raw == nil {
			continue
		}
		holder, live, err := s.resolveOwner(ctx, raw)
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

// commit reads the inputs of a change, builds it, and writes all of it or nothing. It returns failed conditions. If
// only the marker moved, it repeats the commit on the current item.
func (s *Store) commit(ctx context.Context, c *rows.Change) (*lane.Commit, *rows.Refusal, error) {
	const maxMarkerRaces = 8
	c.Replaced, _ = lane.ReplacedPayload(c.Transition)
	c.Transition = rows.AtRest(c.Transition)
	for race := 1; ; race++ {
		if err := s.readInputs(ctx, c); err != nil {
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
			Beside:    c.Beside,
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

// readInputs reads the numbers of shards, and when the wakeup that a new one replaces was first sent. Every try gets a
// new commit ID.
func (s *Store) readInputs(ctx context.Context, c *rows.Change) (err error) {
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

// randomID is 128 bits in hex, for commit IDs (also request tokens, at most 36 characters) and claim tokens.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
