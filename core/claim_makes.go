package core

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
)

// owned is a call of a method whose write has no condition on the lease: who owns the run is read before.
func (c *Claim) owned(ctx context.Context, do func(x *execution) error) error {
	judged := c.judged
	return c.during(ctx, func(x *execution) error {
		if !judged {
			if _, err := x.rt.leasedBy(ctx, x.started.ID, x.token); err != nil {
				return err
			}
		}
		return do(x)
	})
}

// Block ends the attempt until an operator resumes the run, as runlane.Block does. reason says what is to be done
// first; one of more than runlane.MaxPromptBytes is runlane.ErrValidationFailed, and the attempt goes on.
func (c *Claim) Block(ctx context.Context, reason string) error {
	if err := c.x.rt.suspends(); err != nil {
		return err
	}
	blocked, _ := errors.AsType[*runlane.ReleaseError](runlane.Block(reason))
	if err := blocked.Waiting.Validate(); err != nil {
		return err
	}
	return c.end(ctx, releaseVerdict(blocked))
}

// Trigger makes a run whose source is the claimed one, as runlane.Attempt.Trigger does. The lease is read before the
// run is made: an attempt that loses it in between has made the run, as a handler does. Give the run an id or a key.
func (c *Claim) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (result *runlane.TriggerResult, err error) {
	err = c.owned(ctx, func(x *execution) error {
		result, err = x.Trigger(ctx, call, options)
		return err
	})
	return result, err
}

// Signal sends a signal to another run, as runlane.Attempt.Signal does. The lease is read before.
func (c *Claim) Signal(
	ctx context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return c.owned(ctx, func(x *execution) error { return x.Signal(ctx, id, value, options) })
}

// SignalNode sends a signal to a node of a flow, as runlane.Attempt.SignalNode does. The lease is read before.
func (c *Claim) SignalNode(
	ctx context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return c.owned(ctx, func(x *execution) error { return x.SignalNode(ctx, node, value, options) })
}

// CallRuns makes runs below the claimed one, once, and returns them when all have ended, as runlane.Attempt.CallRuns
// does. Until then it ends the attempt, and its error is [runlane.Suspended]: the run is claimed again with the last
// end.
func (c *Claim) CallRuns(ctx context.Context, request runlane.CallRequest) (runs []*runlane.Run, err error) {
	err = c.suspending(ctx, func(x *execution) error {
		runs, err = x.CallRuns(ctx, request)
		return err
	})
	return runs, err
}

// StartFlow starts a flow, as [Runtime.StartFlow] does, by the worker unless options have another actor. The lease is
// read before.
func (c *Claim) StartFlow(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions,
) (state *runlane.FlowState, err error) {
	given := runlane.FlowOptions{}
	if options != nil {
		given = *options
	}
	err = c.owned(ctx, func(x *execution) error {
		if given.Actor == (runlane.Actor{}) {
			given.Actor = x.actor()
		}
		state, err = x.rt.StartFlow(ctx, f, &given)
		return err
	})
	return state, err
}
