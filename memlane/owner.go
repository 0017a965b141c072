package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// scopedKey is an idempotency or singleton key in the scope of its task.
type scopedKey struct {
	task runlane.TaskID
	key  string
}

// owner holds an idempotency key. The policy of retention is the run's, captured at its creation.
type owner struct{ run *entry }

// retains reports whether the run still owns its idempotency key at now.
func (e *entry) retains(now embedded.Millis) bool { return e.known().Retains(e.created.Retention, now) }

// judgeOwners tells which key of a new run has an owner already. The idempotency key is checked before the singleton
// key.
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

// own takes the keys of a new run.
func (env *environment) own(e *entry) {
	if key := e.created.IdempotencyKey; key != "" {
		env.idempotency[scopedKey{e.created.TaskID, key}] = &owner{run: e} // also in place of an owner that is over
	}
	if key := e.created.SingletonKey; key != "" {
		env.singletons[scopedKey{e.created.TaskID, key}] = e
	}
}

// disown frees the keys that a finished run does not keep. A key with a time to live stays and is checked when it is
// read.
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

// GetRunByIdempotencyKey returns the owner of the key, and changes nothing.
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
