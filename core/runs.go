package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Runs is the operator's view of runs. Stateless: get one with [Runtime.Runs] when you need it.
type Runs struct{ rt *Runtime }

// Runs returns the view.
func (rt *Runtime) Runs() *Runs { return &Runs{rt: rt} }

// Wait returns the run once it is terminal: at once where this runtime ends it. Since others may, it also reads the
// storage repeatedly, with growing pauses. A run that does not exist is runlane.ErrRunNotFound. When ctx ends first, the error is runlane.ErrOperationCancelled with ctx's own error
// in its chain.
func (rt *Runtime) Wait(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	var run *runlane.Run
	err := rt.await(ctx, endOf{run: id}, func() (over bool, err error) {
		run, err = rt.get(ctx, id)
		return err == nil && run.Status.Terminal(), err
	})
	switch {
	case err == nil:
		return run, nil
	case ctx.Err() != nil:
		return nil, cancelled(ctx, id)
	default:
		return nil, err
	}
}

// Get returns one run exactly as it is now. A run that does not exist is runlane.ErrRunNotFound.
func (r *Runs) Get(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	return r.rt.get(ctx, id)
}

func (rt *Runtime) get(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	return rt.storage().GetRun(ctx, lane.RunKey{Environment: rt.environment, RunID: id})
}

// FindActive returns the active run that holds a singleton key. It reads the key's owner, so it cannot lag, as lists
// do. When there is none, also once the holder has ended, the error is runlane.ErrRunNotFound.
func (r *Runs) FindActive(ctx context.Context, task runlane.TaskID, singletonKey string) (*runlane.Run, error) {
	key, leave, err := r.rt.ownerKey(task, "singleton key", singletonKey)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !r.rt.storage().Capabilities().EnforcesSingleton {
		return nil, unsupported("the storage does not enforce singleton keys")
	}
	return r.rt.storage().GetRunBySingletonKey(ctx, key)
}

// FindCurrent returns the run that owns an idempotency key: an active one, or a finished one that still retains it. It
// reads the key's owner, so it cannot lag. When there is none, the error is runlane.ErrRunNotFound.
func (r *Runs) FindCurrent(ctx context.Context, task runlane.TaskID, idempotencyKey string) (*runlane.Run, error) {
	key, leave, err := r.rt.ownerKey(task, "idempotency key", idempotencyKey)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !r.rt.storage().Capabilities().EnforcesIdempotency {
		return nil, unsupported("the storage does not enforce idempotency keys")
	}
	return r.rt.storage().GetRunByIdempotencyKey(ctx, key)
}
