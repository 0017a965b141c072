package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ownersFor returns the owners of a creation. Owners known as dead are replaced.
func (s *Store) ownersFor(c *lane.AppendCommand) []rows.Owner {
	owners := rows.OwnersOf(c.Projected, c.PayloadHash)
	for i := range owners {
		if commit, ok := s.owners.get(owners[i].PK); ok {
			owners[i].Replaces = rows.Owner{Commit: commit}.Unchanged()
		}
	}
	return owners
}

// resolveOwner decodes an owner. live is its run while the run holds the key, else nil.
func (s *Store) resolveOwner(ctx context.Context, raw item.Item) (owner rows.Owner, live *rows.Run, err error) {
	if err := rows.Unmarshal(raw, &owner); err != nil {
		return owner, nil, err
	}
	run, err := s.readRun(ctx, owner.RunKey())
	if err != nil {
		return owner, nil, err
	}
	if run == nil || !owner.Holds(run, s.now()) {
		s.rememberDead(owner)
		return owner, nil, nil
	}
	return owner, run, nil
}

// rememberDead saves the next creation with the key a failing commit. Another owner may later have the run ID of one
// without a commit ID, so that one is not remembered.
func (s *Store) rememberDead(owner rows.Owner) {
	if owner.Commit != "" {
		s.owners.put(owner.PK, owner.Commit)
	}
}

// GetRunByIdempotencyKey implements lane.Storage.
func (s *Store) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerRun(ctx, rows.IdempotencyPK(key))
}

// GetRunBySingletonKey implements lane.Storage.
func (s *Store) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerRun(ctx, rows.SingletonPK(key))
}

func (s *Store) ownerRun(ctx context.Context, pk string) (*runlane.Run, error) {
	raw, err := s.db.Get(ctx, "read owner", pk, rows.OwnerSK)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, rows.OwnerNotFound()
	}
	var owner rows.Owner
	if err := rows.Unmarshal(raw, &owner); err != nil {
		return nil, err
	}
	run, current, err := s.readWhole(ctx, owner.RunKey())
	if err != nil {
		return nil, err
	}
	if run == nil || !owner.Holds(current, s.now()) {
		s.rememberDead(owner)
		return nil, rows.OwnerNotFound()
	}
	return run, nil
}

// ResetIdempotencyKey implements lane.Storage.
func (s *Store) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	raw, err := s.db.Get(ctx, "read owner", rows.IdempotencyPK(key), rows.OwnerSK)
	if err != nil {
		return err
	}
	if raw == nil {
		return rows.OwnerNotFound()
	}
	owner, live, err := s.resolveOwner(ctx, raw)
	switch {
	case err != nil:
		return err
	case live == nil:
		return rows.OwnerNotFound()
	case live.State().Active():
		return rows.Conflict(runlane.ConflictIdempotencyKey, owner.Run, "the key's run is %s", live.Status)
	}
	result, err := s.db.Delete(ctx, "reset key", raw, owner.Unchanged())
	if err == nil && result != ddb.Removed {
		return rows.Conflict(runlane.ConflictIdempotencyKey, owner.Run, "another run owns the key now")
	}
	return err
}
