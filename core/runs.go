package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

// Runs lets operators read and change runs. It is stateless; get it from [Runtime.Runs].
type Runs struct{ rt *Runtime }

// Runs returns the operator's view of runs.
func (rt *Runtime) Runs() *Runs { return &Runs{rt: rt} }

// Wait returns the run once it is terminal: at once if this runtime ends it. As others may end it, Wait also polls the
// storage with growing pauses. A missing run is runlane.ErrRunNotFound. If ctx ends first, the error is
// runlane.ErrOperationCancelled with ctx's error in its chain.
func (rt *Runtime) Wait(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	var run *runlane.Run
	err := rt.await(ctx, endOf{run: id}, func() (over bool, err error) {
		run, err = rt.get(apart.Leave(ctx), id)
		return err == nil && run.Status.Terminal(), err
	})
	if err == nil && run.Sealed != nil {
		err = rt.codec.fill(ctx, run)
	}
	switch {
	case err == nil:
		return run, nil
	case ctx.Err() != nil:
		return nil, cancelled(ctx, id)
	default:
		return nil, err
	}
}

// Get returns the run exactly as it is now. A missing run is runlane.ErrRunNotFound.
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

// FindActive returns the active run that holds a singleton key. It reads the key's owner, so unlike lists it cannot
// lag. Without one, also once the holder has ended, the error is runlane.ErrRunNotFound.
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

// FindCurrent returns the run that owns an idempotency key: an active run, or a finished one that still holds it. It
// reads the key's owner, so it cannot lag. Without one the error is runlane.ErrRunNotFound.
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
