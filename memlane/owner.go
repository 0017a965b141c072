package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// scopedKey is an idempotency or singleton key of a task.
type scopedKey struct {
	task runlane.TaskID
	key  string
}

func (e *entry) retains(now embedded.Millis) bool { return e.known().Retains(e.created.Retention, now) }

// holders returns the runs that own the keys of that kind.
func (env *environment) holders(kind embedded.KeyKind) map[scopedKey]*entry {
	if kind == embedded.SingletonKey {
		return env.singletons
	}
	return env.idempotency
}

// asOwner returns the run as the owner of a key, none for nil.
func (e *entry) asOwner() embedded.Owner {
	if e == nil {
		return embedded.Owner{}
	}
	known := e.view() // a finished run may be packed
	return embedded.Owner{ID: e.id, State: known.known(), Retention: known.created.Retention}
}

func (env *environment) own(e *entry) {
	if key := e.created.IdempotencyKey; key != "" {
		env.idempotency[scopedKey{e.created.TaskID, key}] = e // may replace an expired owner
	}
	if key := e.created.SingletonKey; key != "" {
		env.singletons[scopedKey{e.created.TaskID, key}] = e
	}
}

// disown frees the keys that a finished run does not retain. A key with a time to live stays; lookups check the time.
func (env *environment) disown(e *entry) {
	singleton := scopedKey{e.created.TaskID, e.created.SingletonKey}
	if env.singletons[singleton] == e {
		delete(env.singletons, singleton)
	}
	idempotency := scopedKey{e.created.TaskID, e.created.IdempotencyKey}
	if env.idempotency[idempotency] == e && !e.retains(e.state.FinishedAt) {
		delete(env.idempotency, idempotency)
	}
}

// GetRunByIdempotencyKey returns the key's owner. It changes nothing.
func (s *Storage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, embedded.IdempotencyKey, key)
}

// GetRunBySingletonKey returns the active run that owns the key.
func (s *Storage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, embedded.SingletonKey, key)
}

func (s *Storage) ownerOf(ctx context.Context, kind embedded.KeyKind, key lane.OwnerKey) (*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	now := embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	var holder *entry
	if env := s.find(key.Environment); env != nil {
		holder = env.holders(kind)[scopedKey{key.TaskID, key.Key}]
	}
	if err := embedded.FindOwner(holder.asOwner(), kind, now); err != nil {
		return nil, err
	}
	return holder.view().project(true), nil
}

// ResetIdempotencyKey frees the key of a finished run.
func (s *Storage) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	now := embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	env, scoped := s.find(key.Environment), scopedKey{key.TaskID, key.Key}
	if env == nil {
		return embedded.JudgeReset(embedded.Owner{}, now)
	}
	if err := embedded.JudgeReset(env.idempotency[scoped].asOwner(), now); err != nil {
		return err
	}
	delete(env.idempotency, scoped)
	return nil
}
