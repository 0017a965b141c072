package dynamostore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ownerItem gives a key to a run. It never expires by itself: an active owner may not. It is resolved when a caller wants the
// key: an owner whose run is failed, released by policy, past its time or gone is dead, and replaced by a write conditional on
// the dead owner as it was read.
type ownerItem struct {
	PK          string        `dynamodbav:"pk"`
	SK          string        `dynamodbav:"sk"`
	Run         runlane.RunID `dynamodbav:"ru"`
	PayloadHash string        `dynamodbav:"ph,omitempty"`
	Retention   int64         `dynamodbav:"ir,omitempty"`
	Commit      string        `dynamodbav:"ci,omitempty"` // that created the run; owners of older programs have none

	replaces condition // on the dead owner that this one follows; none: there is no owner
}

func (o ownerItem) member() (member, error) {
	raw, err := marshalItem(o)
	m := member{after: raw, condition: absent}
	if o.replaces.text != "" {
		m.condition = o.replaces
	}
	return m, err
}

// unchanged is the condition that the owner is still this one. The id of a run is used again after it was pruned (computed ids, and
// those that callers choose), and then names another owner; the id of a commit is never used again.
func (o ownerItem) unchanged() condition {
	if o.Commit != "" {
		return equal("ci", text(o.Commit))
	}
	return equal("ru", text(string(o.Run))).and(condition{text: "attribute_not_exists(#ci)"})
}

const maxOwnerRounds = 3

// create commits a new run with its owners. Idempotency is judged before the run's own id, and that before singleton.
func (s *Store) create(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := c.Validate(); err != nil {
		if run, readErr := s.readRun(ctx, c.Key()); readErr == nil && run != nil {
			return nil, sequenceConflict(&c.Transition, run.Sequence)
		}
		return nil, err
	}
	owners := s.ownersFor(c)
	slot, err := s.creationSlot(ctx, c)
	if err != nil {
		return nil, s.ownedFirst(ctx, owners, err)
	}
	for round := 1; ; round++ {
		commit, refused, err := s.commit(ctx, &change{Transition: &c.Transition, birth: c.Outbox, owners: owners, slot: slot})
		if err != nil || refused == nil {
			return commit, err
		}
		if refused.onlySlots() {
			return nil, noCapacity(c)
		}
		exists := refused.run()
		for i := range owners {
			old, failed := refused.owner(i)
			if old == nil {
				if failed {
					owners[i].replaces = condition{} // gone meanwhile
				}
				continue
			}
			if isSingleton(owners[i]) && exists != nil {
				break
			}
			holder, live, err := s.resolve(ctx, old)
			if err != nil {
				return nil, err
			}
			if live != nil && holder.Run != c.Projected.ID {
				return nil, ownerConflict(owners[i], holder.Run)
			}
			owners[i].replaces = holder.unchanged()
		}
		if exists != nil {
			return nil, sequenceConflict(&c.Transition, number(exists["sq"]))
		}
		if round == maxOwnerRounds {
			return nil, &runlane.Error{
				Code: runlane.ErrStorageUnavailable, RunID: c.Projected.ID, Message: "the owner of a key kept changing", Retryable: true,
				Hint: "try again", Meta: map[string]string{"outcome": "not committed"},
			}
		}
	}
}

// creationSlot plans the slot of a creation that carries a reservation, or that starts at once on a bounded queue.
func (s *Store) creationSlot(ctx context.Context, c *lane.AppendCommand) (slotChange, error) {
	if !c.Queue.Bounded() || !lane.HoldsSlot(c.Projected) {
		return slotChange{}, nil
	}
	limited := ctx
	if c.Reserves() { // it can wait without a slot: what is left of the caller's time is for the commit
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.db.Timeout/slotPatience)
		defer cancel()
	}
	slot, ok, err := s.takeSlot(limited, projected(&c.Transition, nil), c.Queue.Concurrency, toMillis(c.Projected.UpdatedAt),
		toMillis(c.Projected.DispatchExpiresAt), creationWindows)
	switch {
	case err == nil && !ok:
		return slot, noCapacity(c)
	case err != nil && c.Reserves() && ctx.Err() == nil && !errors.Is(err, runlane.ErrInvariantViolation): // of a format beyond ours
		full := noCapacity(c)
		full.Cause = err
		return slot, full
	}
	slot.yields = c.Reserves()
	return slot, err
}

// slotPatience is the part of a request's time that a creation with a reservation spends on finding a slot.
const slotPatience = 4

// ownedFirst is the conflict on a key, where there is one, in place of a full queue: keys are judged first.
func (s *Store) ownedFirst(ctx context.Context, owners []ownerItem, full error) error {
	for _, owner := range owners {
		raw, err := s.db.Get(ctx, "read owner", owner.PK, skOwner)
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
			return ownerConflict(owner, holder.Run)
		}
	}
	return full
}

func noCapacity(c *lane.AppendCommand) *runlane.Error {
	return conflict(runlane.ConflictQueueCapacity, c.Projected.ID, "queue %q has no free slot", c.Queue.Name)
}

// ownersFor are the owners of a creation. Those that are known to be dead are replaced.
func (s *Store) ownersFor(c *lane.AppendCommand) []ownerItem {
	owners := ownersOf(c.Projected, c.PayloadHash)
	for i := range owners {
		if commit, ok := s.owners.get(owners[i].PK); ok {
			owners[i].replaces = ownerItem{Commit: commit}.unchanged()
		}
	}
	return owners
}

// ownersOf are the owner items of a run's keys, the idempotency key's first.
func ownersOf(run *runlane.Run, payloadHash string) []ownerItem {
	var owners []ownerItem
	key := lane.OwnerKey{Environment: run.Environment, TaskID: run.TaskID}
	if key.Key = run.IdempotencyKey; key.Key != "" {
		owners = append(owners, ownerItem{
			PK: idempotencyPK(key), SK: skOwner, Run: run.ID, PayloadHash: payloadHash, Retention: storedRetention(run.Retention),
		})
	}
	if key.Key = run.SingletonKey; key.Key != "" {
		owners = append(owners, ownerItem{PK: singletonPK(key), SK: skOwner, Run: run.ID})
	}
	return owners
}

func isSingleton(o ownerItem) bool { return strings.Contains(o.PK, ":single:") }

func ownerConflict(o ownerItem, holder runlane.RunID) error {
	if isSingleton(o) {
		return conflict(runlane.ConflictSingletonKey, holder, "an active run owns the singleton key")
	}
	return conflict(runlane.ConflictIdempotencyKey, holder, "a run owns the idempotency key")
}

// resolve tells who holds a key: live is the run while it does.
func (s *Store) resolve(ctx context.Context, raw item) (owner ownerItem, live *runItem, err error) {
	if err := unmarshalItem(raw, &owner); err != nil {
		return owner, nil, err
	}
	run, err := s.readRun(ctx, owner.runKey())
	if err != nil {
		return owner, nil, err
	}
	if run == nil || !owner.holds(run, s.now()) {
		s.rememberDead(owner)
		return owner, nil, nil
	}
	return owner, run, nil
}

// rememberDead spares the next creation with the key a commit that fails. An owner that only its run names may be another's by then.
func (s *Store) rememberDead(owner ownerItem) {
	if owner.Commit != "" {
		s.owners.put(owner.PK, owner.Commit)
	}
}

// runKey names the holder: an owner is of the environment that its key begins with.
func (o ownerItem) runKey() lane.RunKey {
	environment, _, _ := strings.Cut(o.PK, ":")
	return lane.RunKey{Environment: runlane.Environment(environment), RunID: o.Run}
}

// holds is the retention matrix: active runs hold their keys; of finished ones only successful and cancelled runs, for an
// idempotency key with a time, until creation plus that time. A run without the key is another one than that which took it, under
// the same id.
func (o ownerItem) holds(run *runItem, now time.Time) bool {
	switch {
	case !o.isKeyOf(run):
		return false
	case run.status().Active():
		return true
	case isSingleton(o) || o.Retention < 0 || run.status() == runlane.StatusFailed:
		return false
	default:
		return now.Before(run.CreatedAt.time().Add(time.Duration(o.Retention) * time.Millisecond))
	}
}

func (o ownerItem) isKeyOf(run *runItem) bool {
	key := lane.OwnerKey{Environment: run.key().Environment, TaskID: runlane.TaskID(run.Task), Key: run.IdempotencyKey}
	if !isSingleton(o) {
		return o.PK == idempotencyPK(key)
	}
	key.Key = run.SingletonKey
	return o.PK == singletonPK(key)
}

// GetRunByIdempotencyKey implements lane.Storage.
func (s *Store) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerRun(ctx, idempotencyPK(key))
}

// GetRunBySingletonKey implements lane.Storage.
func (s *Store) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerRun(ctx, singletonPK(key))
}

func (s *Store) ownerRun(ctx context.Context, pk string) (*runlane.Run, error) {
	raw, err := s.db.Get(ctx, "read owner", pk, skOwner)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, ownerNotFound()
	}
	var owner ownerItem
	if err := unmarshalItem(raw, &owner); err != nil {
		return nil, err
	}
	run, current, err := s.readWhole(ctx, owner.runKey())
	if err != nil {
		return nil, err
	}
	if run == nil || !owner.holds(current, s.now()) {
		s.rememberDead(owner)
		return nil, ownerNotFound()
	}
	return run, nil
}

// ResetIdempotencyKey implements lane.Storage.
func (s *Store) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	raw, err := s.db.Get(ctx, "read owner", idempotencyPK(key), skOwner)
	if err != nil {
		return err
	}
	if raw == nil {
		return ownerNotFound()
	}
	owner, live, err := s.resolve(ctx, raw)
	switch {
	case err != nil:
		return err
	case live == nil:
		return ownerNotFound()
	case live.status().Active():
		return conflict(runlane.ConflictIdempotencyKey, owner.Run, "the key's run is %s", live.Status)
	}
	result, err := s.db.Delete(ctx, "reset key", raw, owner.unchanged())
	if err == nil && result != Removed {
		return conflict(runlane.ConflictIdempotencyKey, owner.Run, "the key changed hands")
	}
	return err
}
