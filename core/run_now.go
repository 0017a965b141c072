package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// RunNow creates a run and executes one attempt of it here: run.created, run.lease_claimed and run.started are one
// commit, and no wakeup is sent. It returns after that attempt. A failed handler is no error here: read Run.Status and
// Run.Failure. A run to be retried or released goes on like any other.
//
// The task needs a handler here that accepts the payload (runlane.ErrTaskNotFound). A duplicate idempotency key
// executes no attempt and returns the existing run. A full bounded queue is runlane.ConflictQueueCapacity, and no run
// is written. An ordered queue is runlane.ErrConfigurationInvalid ([ErrOrdered]): the run would not wait for its turn.
// A paused queue or task is runlane.ConflictPauses. Delay, RunAt, Debounce and Deferred are runlane.ErrValidationFailed.
// When ctx ends, the attempt is released as on a shutdown.
func (rt *Runtime) RunNow(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	if err := rt.gate.enter(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if options == nil {
		options = &noOptions
	}
	later := options.Delay != 0 || !options.RunAt.IsZero() || options.Debounce != (runlane.Debounce{})
	if later || options.Deferred {
		return nil, invalidInput("use Trigger for a run that begins later",
			"RunNow takes no Delay, RunAt, Debounce or Deferred")
	}
	p := plan{options: options}
	if err := rt.prepare(&p, call); err != nil {
		return nil, err
	}
	h, ok := rt.handlers[p.task.ID]
	if !ok {
		return nil, taskNotFound(p.task.ID, "")
	}
	if err := checkAccepts(h, "", p.payload); err != nil {
		return nil, err
	}
	if err := rt.refuseOrdered("RunNow", p.queue.Name); err != nil {
		return nil, err
	}
	if err := rt.refusePaused(ctx, p.queue.Name, p.task.ID); err != nil {
		return nil, err
	}
	if !rt.storage().Capabilities().LeasesRuns {
		return nil, unsupported("the storage cannot lease runs")
	}
	r := newRules(&DeliveryOptions{}, 0, rt.world.Now)
	lease := runlane.Lease{Token: rt.world.NewID("lease_"), WorkerID: rt.workerID, ExpiresAt: r.leaseEnd(p.at)}
	rt.executing.expect(lease.Token)
	defer rt.executing.forget(lease.Token)
	making, t := rt.traceCreation(ctx, &p)
	result, commit, err := rt.resolve(making, &p, func(ctx context.Context, p *plan) (*lane.Commit, error) {
		return rt.createStarted(ctx, p, lease)
	})
	t.done(createdEnd(result, err))
	if commit == nil {
		return result, err
	}
	started := commit.Run
	x := &execution{
		rt:       rt,
		handler:  h,
		rules:    r,
		workerID: rt.workerID,
		token:    lease.Token,
		started:  started,
		run:      started,
	}
	ctx, t = rt.traceRun(ctx, WorkAttempt, started, 1, rt.workerID)
	delivered, err := x.perform(ctx, &rt.executions)
	t.done(deliveredEnd(delivered, err))
	if err != nil {
		return nil, err
	}
	result.Run = delivered.Run
	return result, nil
}
