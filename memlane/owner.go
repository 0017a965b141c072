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

// owner holds an idempotency key. The run captured its retention at creation.
type owner struct{ run *entry }

func (e *entry) retains(now embedded.Millis) bool { return e.known().Retains(e.created.Retention, now) }

// judgeOwners refuses a new run if one of its keys has an owner. It checks the idempotency key first.
func (env *environment) judgeOwners(e *entry, now embedded.Millis) error {
	idempotency := scopedKey{e.created.TaskID, e.created.IdempotencyKey}
	singleton := scopedKey{e.created.TaskID, e.created.SingletonKey}
	if idempotency.key != "" {
		if holder := env.idempotency[idempotency]; holder != nil && holder.run.view().retains(now) {
			return embedded.IdempotencyOwned(holder.run.id)
		}
	}
	if singleton.key != "" {
		if holder := env.singletons[singleton]; holder != nil {
			return embedded.SingletonOwned(holder.id)
		}
	}
	return nil
}

func (env *environment) own(e *entry) {
	if key := e.created.IdempotencyKey; key != "" {
		env.idempotency[scopedKey{e.created.TaskID, key}] = &owner{run: e} // may replace an expired owner
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
	if holder := env.idempotency[idempotency]; holder != nil && holder.run == e && !e.retains(e.state.FinishedAt) {
		delete(env.idempotency, idempotency)
	}
}

// GetRunByIdempotencyKey returns the key's owner. It changes nothing.
func (s *Storage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	now := embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if env := s.find(key.Environment); env != nil {
		if holder := env.idempotency[scopedKey{key.TaskID, key.Key}]; holder != nil {
			if run := holder.run.view(); run.retains(now) {
				return run.project(true), nil
			}
		}
	}
	return nil, embedded.NoOwner("idempotency")
}

// GetRunBySingletonKey returns the active run that owns the key.
func (s *Storage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if env := s.find(key.Environment); env != nil {
		if holder := env.singletons[scopedKey{key.TaskID, key.Key}]; holder != nil {
			return holder.project(true), nil
		}
	}
	return nil, embedded.NoOwner("singleton")
}

// ResetIdempotencyKey frees the key of a finished run.
func (s *Storage) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	now := embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(key.Environment)
	if env == nil {
		return embedded.NoOwner("idempotency")
	}
	scoped := scopedKey{key.TaskID, key.Key}
	holder := env.idempotency[scoped]
	if holder == nil || !holder.run.view().retains(now) {
		return embedded.NoOwner("idempotency")
	}
	if holder.run.unpacked != nil {
		if err := embedded.JudgeReset(holder.run.known(), holder.run.id); err != nil {
			return err
		}
	}
	delete(env.idempotency, scoped)
	return nil
}
