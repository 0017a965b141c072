package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// IdempotencyKeys is the operator's view of idempotency keys. Stateless: get one with [Runtime.IdempotencyKeys] when
// you need it. To read the owner of a key, use [Runs.FindCurrent].
type IdempotencyKeys struct{ rt *Runtime }

// IdempotencyKeys returns the view.
func (rt *Runtime) IdempotencyKeys() *IdempotencyKeys { return &IdempotencyKeys{rt: rt} }

// Reset frees a key that a finished run retains: the next trigger with it makes a new run. The finished run stays as it
// is. An active owner is runlane.ErrStorageConflict with runlane.ConflictIdempotencyKey, and is in Error.RunID. A key
// without an owner is runlane.ErrRunNotFound.
func (k *IdempotencyKeys) Reset(ctx context.Context, task runlane.TaskID, key string) error {
	owner, leave, err := k.rt.ownerKey(task, "idempotency key", key)
	if err != nil {
		return err
	}
	defer leave()
	if !k.rt.storage().Capabilities().EnforcesIdempotency {
		return unsupported("the storage does not enforce idempotency keys")
	}
	return k.rt.storage().ResetIdempotencyKey(ctx, owner)
}

// ownerKey enters the gate and validates the key. Call leave unless there is an error.
func (rt *Runtime) ownerKey(task runlane.TaskID, what, key string) (owner lane.OwnerKey, leave func(), err error) {
	if err := rt.gate.enterLate(); err != nil {
		return lane.OwnerKey{}, nil, err
	}
	err = firstError(task.Validate(), runlane.ValidateKey(what, key))
	if err == nil && key == "" {
		err = invalidInput("give the key that the run was triggered with", "%s is empty", what)
	}
	if err != nil {
		rt.gate.leave()
		return lane.OwnerKey{}, nil, err
	}
	return lane.OwnerKey{Environment: rt.environment, TaskID: task, Key: key}, rt.gate.leave, nil
}
