package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/remote"
)

// ByToken finds the attempt of a [Claim]'s token, with one read. An expired lease still belongs to the client until
// another attempt has the run. Safe for concurrent use. Errors: runlane.ErrTokenInvalid if the text is not a token,
// runlane.ErrStorageConflict of the kind runlane.ConflictLeaseOwnership if the run no longer has the attempt,
// runlane.ErrTaskNotFound if this runtime lacks the task.
func (rt *Runtime) ByToken(ctx context.Context, token string) (*Claim, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	id, lease, ok := remote.Parse(token)
	if !ok {
		return nil, remote.Invalid()
	}
	run, err := rt.leasedBy(ctx, id, lease)
	if err != nil {
		return nil, err
	}
	task, ok := rt.clientTasks[run.TaskID]
	if !ok {
		return nil, taskNotFound(run.TaskID, id)
	}
	x := &execution{
		rt:       rt,
		handler:  runlane.Handler{Task: task.Definition},
		workerID: run.Lease.WorkerID,
		token:    lease,
		started:  run,
		run:      run,
	}
	return &Claim{Token: token, Run: run, x: x.rejoin(), judged: true}, nil
}

// leasedBy reads a run, without its payload, and checks its lease.
func (rt *Runtime) leasedBy(ctx context.Context, id runlane.RunID, lease string) (*runlane.Run, error) {
	run, err := rt.bare(ctx, id)
	switch {
	case isNotFound(err):
		return nil, remote.Lost(id)
	case err != nil:
		return nil, err
	case !run.Status.Owned() || run.Lease.Token != lease:
		return nil, remote.Lost(id)
	}
	return run, nil
}

// rejoin prepares an execution with its handler elsewhere: no context until a call, and no memory of the attempt.
func (x *execution) rejoin() *execution {
	x.remote = true
	x.cancel = func(error) {}
	x.wake = make(chan struct{}, 2)
	return x
}

// call runs one method under the caller's context, and updates Run.
func (c *Claim) call(ctx context.Context, do func(x *execution) error) error {
	if c.x.lost.Load() {
		return remote.Lost(c.Run.ID)
	}
	if err := c.x.rt.gate.enterLate(); err != nil {
		return err
	}
	defer c.x.rt.gate.leave()
	c.x.ctx, c.x.handling = ctx, ctx
	c.judged = false
	err := do(c.x)
	if err == nil && c.x.lost.Load() {
		err = remote.Lost(c.Run.ID)
	}
	if c.x.run != nil {
		c.Run = c.x.run
	}
	return err
}

// end records an outcome and closes the claim.
func (c *Claim) end(ctx context.Context, v verdict) error {
	err := c.call(ctx, func(x *execution) error {
		result, err := x.finish(ctx, v)
		switch {
		case err != nil:
			return err
		case result.Ignored != "":
			return remote.Lost(c.Run.ID)
		}
		x.run = result.Run
		x.traceEnded(ctx, result.Run)
		return nil
	})
	if err == nil {
		c.x.lost.Store(true)
	}
	return err
}

// Deadline is the end of the attempt's time; zero for a task without a timeout.
func (c *Claim) Deadline() time.Time {
	limit := c.x.handler.Task.Timeout
	if limit == 0 {
		return time.Time{}
	}
	return c.Run.StartedAt.Add(limit)
}

// Heartbeat extends the lease from now by lease, 0 for runlane.DefaultLease, and at most to 5 s after Deadline. If Run
// then has runlane.StatusCancellationRequested, the client should stop and release. After Deadline the attempt is ended
// as timed out, and lost.
func (c *Claim) Heartbeat(ctx context.Context, lease time.Duration) error {
	o := ClaimOptions{Lease: lease}
	if err := o.check(c.x.rt); err != nil {
		return err
	}
	if end := c.Deadline(); !end.IsZero() && !c.x.rt.now().Before(end) {
		return firstError(c.end(ctx, verdict{kind: verdictStopped, cause: runlane.ErrTimeout}), remote.Lost(c.Run.ID))
	}
	return c.call(ctx, func(x *execution) error {
		x.rules = newRules(&DeliveryOptions{}, lease, x.rt.world.Now)
		if end := c.Deadline(); !end.IsZero() {
			x.rules.lease = min(x.rules.lease, end.Add(leaseAfterDeadline).Sub(x.rt.now()))
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.keep(ctx)
	})
}

// Complete ends the attempt with success. output is JSON, stored byte by byte; nil for none. Output that the storage
// cannot hold is runlane.ErrValidationFailed, and the attempt goes on.
func (c *Claim) Complete(ctx context.Context, output json.RawMessage) error {
	if output != nil {
		checked := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Reports: outputCheck{c.x}})
		err := c.call(ctx, func(*execution) error { return checked.SetOutput(output) })
		if err != nil {
			return err
		}
	}
	c.x.output = output
	return c.end(ctx, verdict{kind: verdictSucceeded})
}

// outputCheck rejects output that the storage cannot hold, and stores none.
type outputCheck struct{ *execution }

func (c outputCheck) ReportOutput(output json.RawMessage) error { return c.checkOutput(output) }

// ClaimFailure is the reason of a failed attempt.
type ClaimFailure struct {
	// Code is the client's, or one of package runlane; "" means runlane.ErrTaskFailed.
	Code runlane.ErrorCode
	// Message is stored with the run, for people. It should not quote the payload.
	Message string
	// Meta is stored with the message.
	Meta map[string]string
	// Permanent ends the run without another attempt.
	Permanent bool
	// After delays the next attempt. nil means the task's backoff.
	After *time.Duration
}

// Fail ends the attempt with a failure, to which the task's Retry applies. nil is a failure without text. A delay below
// 0, or with a permanent failure, is runlane.ErrValidationFailed.
func (c *Claim) Fail(ctx context.Context, f *ClaimFailure) error {
	if f == nil {
		f = &ClaimFailure{}
	}
	err, refused := (*remote.Failure)(f).Err(foreignFailure)
	if refused != nil {
		return refused
	}
	return c.end(ctx, verdictOf(ctx, err, c.x.texts()))
}

// Release ends the attempt without an outcome, at no cost to the run's retries. nil lets another client go on at once,
// as on a shutdown, and cancels a run that was asked to stop. A delay follows the rules of runlane.Release, or is
// runlane.ErrValidationFailed.
func (c *Claim) Release(ctx context.Context, r *runlane.ReleaseError) error {
	if r == nil {
		return c.end(ctx, verdict{kind: verdictStopped, cause: runlane.ErrShutdown})
	}
	v := releaseVerdict(&runlane.ReleaseError{Delay: r.Delay, Reason: r.Reason, Meta: r.Meta})
	if v.kind == verdictFailed {
		return invalidInput("use more than 0 and at most "+runlane.FormatDuration(runlane.MaxReleaseDelay),
			"the delay of the release is %s", r.Delay)
	}
	return c.end(ctx, v)
}

// Progress writes a note for operators, as runlane.Attempt.Progress does, but at once: send at most one a second.
func (c *Claim) Progress(ctx context.Context, note string) error {
	return c.call(ctx, func(x *execution) error { return x.ReportProgress(ctx, note) })
}

// Steps returns the run's records in order.
func (c *Claim) Steps(ctx context.Context) (records []runlane.StepRecord, err error) {
	err = c.call(ctx, func(x *execution) error {
		records, err = (&Runs{rt: x.rt}).Steps(ctx, x.started.ID)
		return err
	})
	return records, err
}

// Keep records the result of a step, or returns the existing record of that name, by the rules of runlane.Step. It
// reads the run's records. If code of a higher version has continued the run, it suspends the attempt, as in a handler.
func (c *Claim) Keep(ctx context.Context, name string, result json.RawMessage) (*runlane.StepRecord, error) {
	return c.record(ctx, name, runlane.StepKindStep, result)
}

// Snapshot is like Keep, and records a current value for later attempts and operators, as runlane.Attempt.Snapshot
// does.
func (c *Claim) Snapshot(ctx context.Context, name string, value json.RawMessage) (*runlane.StepRecord, error) {
	return c.record(ctx, name, runlane.StepKindSnapshot, value)
}

func (c *Claim) record(
	ctx context.Context, name string, kind runlane.StepKind, result json.RawMessage,
) (kept *runlane.StepRecord, err error) {
	if err := remote.CheckValue(kind, result); err != nil {
		return nil, err
	}
	err = c.callSuspending(ctx, func(x *execution) error {
		call := runlane.StepCall{Name: name, Kind: kind}
		kept, err = x.Remember(ctx, call, func(context.Context) (json.RawMessage, error) { return result, nil })
		return err
	})
	return kept, err
}

// Sleep ends the attempt until d has passed since the run first slept under this name, as runlane.Attempt.Sleep does.
// Then it returns nil.
func (c *Claim) Sleep(ctx context.Context, name string, d time.Duration) error {
	return c.callSuspending(ctx, func(x *execution) error { return x.Sleep(ctx, name, d) })
}

// Wait looks for signals, as runlane.Signal.Wait does. Without an answer it ends the attempt.
func (c *Claim) Wait(ctx context.Context, request runlane.WaitRequest) (answer runlane.WaitAnswer, err error) {
	err = c.callSuspending(ctx, func(x *execution) error {
		answer, err = x.Wait(ctx, request)
		return err
	})
	return answer, err
}

// callSuspending makes a call that may suspend the attempt. It repeats it if an answer came between read and
// suspension.
func (c *Claim) callSuspending(ctx context.Context, call func(x *execution) error) error {
	for {
		err := c.callOwned(ctx, call)
		release, suspended := errors.AsType[*runlane.ReleaseError](err)
		if !suspended {
			return err
		}
		ended := c.end(ctx, c.x.suspensionOf(ctx, releaseVerdict(release)))
		if !isConflict(ended, runlane.ConflictWait) {
			return firstError(ended, release)
		}
		if ctx.Err() != nil {
			return cancelled(ctx, c.Run.ID)
		}
		s := &c.x.suspended
		s.waits, s.call = nil, nil
		c.x.over, c.x.steps.loaded = false, false
	}
}

// callOwned is call for writes without a condition on the lease: it checks the owner before.
func (c *Claim) callOwned(ctx context.Context, do func(x *execution) error) error {
	judged := c.judged
	return c.call(ctx, func(x *execution) error {
		if !judged {
			if _, err := x.rt.leasedBy(ctx, x.started.ID, x.token); err != nil {
				return err
			}
		}
		return do(x)
	})
}

// Block ends the attempt until an operator resumes the run, as runlane.Block does. reason asks for what to do first.
// More than runlane.MaxPromptBytes is runlane.ErrValidationFailed, and the attempt goes on.
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

// Trigger makes a run with the claimed one as its source, as runlane.Attempt.Trigger does. It checks the lease before;
// if the lease is lost in between, the run is still made. Give the run an id or a key.
func (c *Claim) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (result *runlane.TriggerResult, err error) {
	err = c.callOwned(ctx, func(x *execution) error {
		result, err = x.Trigger(ctx, call, options)
		return err
	})
	return result, err
}

// Signal sends a signal to another run, as runlane.Attempt.Signal does. It checks the lease before.
func (c *Claim) Signal(
	ctx context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return c.callOwned(ctx, func(x *execution) error { return x.Signal(ctx, id, value, options) })
}

// SignalNode sends a signal to a node of a flow, as runlane.Attempt.SignalNode does. It checks the lease before.
func (c *Claim) SignalNode(
	ctx context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return c.callOwned(ctx, func(x *execution) error { return x.SignalNode(ctx, node, value, options) })
}

// CallRuns makes runs below the claimed one, once, and returns them when all have ended, as runlane.Attempt.CallRuns
// does. Before that it ends the attempt.
func (c *Claim) CallRuns(ctx context.Context, request runlane.CallRequest) (runs []*runlane.Run, err error) {
	err = c.callSuspending(ctx, func(x *execution) error {
		runs, err = x.CallRuns(ctx, request)
		return err
	})
	return runs, err
}

// StartFlow starts a flow, as [Runtime.StartFlow] does. The default actor is the worker. It checks the lease before.
func (c *Claim) StartFlow(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions,
) (state *runlane.FlowState, err error) {
	given := runlane.FlowOptions{}
	if options != nil {
		given = *options
	}
	err = c.callOwned(ctx, func(x *execution) error {
		if given.Actor == (runlane.Actor{}) {
			given.Actor = x.actor()
		}
		state, err = x.rt.startFlow(ctx, f, &given, x.started.TraceCarrier)
		return err
	})
	return state, err
}
