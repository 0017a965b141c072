package core

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/remote"
)

// ByToken finds the attempt that a token of [Claim] is for, with one read. A text that is no such token is
// runlane.ErrTokenInvalid; one of an attempt that its run does not have any more is runlane.ErrStorageConflict of the
// kind runlane.ConflictLeaseOwnership. A lease that is over by its time alone is still the client's. A runtime without
// the task is runlane.ErrTaskNotFound. Safe for concurrent use.
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

// leasedBy reads a run, without its payload, that has the lease of a claim.
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

// rejoin makes an execution one whose handler is elsewhere: it has no context until a call, and does not know what the
// attempt did before.
func (x *execution) rejoin() *execution {
	x.remote = true
	x.cancel = func(error) {}
	x.wake = make(chan struct{}, 2)
	return x
}

// during is a call of a method: its context is the attempt's.
func (c *Claim) during(ctx context.Context, do func(x *execution) error) error {
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

// end records an outcome, after which the claim is over.
func (c *Claim) end(ctx context.Context, v verdict) error {
	err := c.during(ctx, func(x *execution) error {
		result, err := x.finish(ctx, v)
		switch {
		case err != nil:
			return err
		case result.Ignored != "":
			return remote.Lost(c.Run.ID)
		}
		x.run = result.Run
		return nil
	})
	if err == nil {
		c.x.lost.Store(true)
	}
	return err
}

// Deadline is when the attempt's time is over; zero for a task without a timeout.
func (c *Claim) Deadline() time.Time {
	limit := c.x.handler.Task.Timeout
	if limit == 0 {
		return time.Time{}
	}
	return c.Run.StartedAt.Add(limit)
}

// Heartbeat extends the lease: from now on by lease, 0 for runlane.DefaultLease, and at most to 5 s after Deadline. The
// status of Run is then runlane.StatusCancellationRequested where the client should stop and release. An attempt whose
// time is over is ended as one that timed out, and lost.
func (c *Claim) Heartbeat(ctx context.Context, lease time.Duration) error {
	o := ClaimOptions{Lease: lease}
	if err := o.check(c.x.rt); err != nil {
		return err
	}
	if end := c.Deadline(); !end.IsZero() && !c.x.rt.now().Before(end) {
		return firstError(c.end(ctx, verdict{kind: verdictStopped, cause: runlane.ErrTimeout}), remote.Lost(c.Run.ID))
	}
	return c.during(ctx, func(x *execution) error {
		x.rules = newRules(&DeliveryOptions{}, lease, x.rt.world.Now)
		if end := c.Deadline(); !end.IsZero() {
			x.rules.lease = min(x.rules.lease, end.Add(leaseAfterDeadline).Sub(x.rt.now()))
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.keep(ctx)
	})
}

// Complete ends the attempt with success. output is JSON, kept byte by byte; nil for none. One that the storage cannot
// hold is runlane.ErrValidationFailed, and the attempt goes on.
func (c *Claim) Complete(ctx context.Context, output json.RawMessage) error {
	if output != nil {
		checked := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Reports: outputCheck{c.x}})
		err := c.during(ctx, func(*execution) error { return checked.SetOutput(output) })
		if err != nil {
			return err
		}
	}
	c.x.output = output
	return c.end(ctx, verdict{kind: verdictSucceeded})
}

// outputCheck refuses an output that the storage cannot hold, and keeps none.
type outputCheck struct{ *execution }

// ReportOutput implements runlane.ReportHost.
func (c outputCheck) ReportOutput(output json.RawMessage) error { return c.checkOutput(output) }

// ClaimFailure is why a client's attempt failed.
type ClaimFailure struct {
	// Code is the client's own, or one of package runlane; "" means runlane.ErrTaskFailed.
	Code runlane.ErrorCode
	// Message is kept in the run, for people: it should not quote the payload.
	Message string
	// Meta is kept beside it.
	Meta map[string]string
	// Permanent ends the run: it is not tried again.
	Permanent bool
	// After is when it is tried again, in place of the task's backoff. nil means the backoff.
	After *time.Duration
}

// Fail ends the attempt with a failure, after which the task's Retry holds. nil is a failure without a text. A delay
// below 0, or one for a permanent failure, is runlane.ErrValidationFailed.
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

// Release ends the attempt without an outcome, and costs the run none of its retries. nil lets another client go on at
// once, as on a shutdown; a run that was asked to stop is cancelled by it. With a delay it is released as by
// runlane.Release, whose rules hold: what breaks them is runlane.ErrValidationFailed.
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

// Progress leaves a note for operators, as runlane.Attempt.Progress does. It is written at once: send one a second at
// most.
func (c *Claim) Progress(ctx context.Context, note string) error {
	return c.during(ctx, func(x *execution) error { return x.ReportProgress(ctx, note) })
}

// Steps are what the run remembers, in the order of recording.
func (c *Claim) Steps(ctx context.Context) (records []runlane.StepRecord, err error) {
	err = c.during(ctx, func(x *execution) error {
		records, err = (&Runs{rt: x.rt}).Steps(ctx, x.started.ID)
		return err
	})
	return records, err
}

// Keep records the result of a step, unless the run has a record of the name: that one is returned then, as a second
// call of a step returns the first one's. The rules are those of runlane.Step. It reads the records of the run. Code of
// a higher version that has gone on with the run suspends the attempt, as in a handler.
func (c *Claim) Keep(ctx context.Context, name string, result json.RawMessage) (*runlane.StepRecord, error) {
	return c.record(ctx, name, runlane.StepKindStep, result)
}

// Snapshot records a value as it is now, for later attempts and for operators, as runlane.Attempt.Snapshot does.
// Otherwise it is as Keep.
func (c *Claim) Snapshot(ctx context.Context, name string, value json.RawMessage) (*runlane.StepRecord, error) {
	return c.record(ctx, name, runlane.StepKindSnapshot, value)
}

func (c *Claim) record(
	ctx context.Context, name string, kind runlane.StepKind, result json.RawMessage,
) (kept *runlane.StepRecord, err error) {
	if err := remote.CheckValue(kind, result); err != nil {
		return nil, err
	}
	err = c.suspending(ctx, func(x *execution) error {
		call := runlane.StepCall{Name: name, Kind: kind}
		kept, err = x.Remember(ctx, call, func(context.Context) (json.RawMessage, error) { return result, nil })
		return err
	})
	return kept, err
}

// Sleep ends the attempt until d has passed since the run first slept under this name, as runlane.Attempt.Sleep does.
// It returns nil once it has, and [runlane.Suspended] with the reason where the attempt has ended: the run is claimed
// again then.
func (c *Claim) Sleep(ctx context.Context, name string, d time.Duration) error {
	return c.suspending(ctx, func(x *execution) error { return x.Sleep(ctx, name, d) })
}

// Wait looks for signals, as runlane.Signal.Wait does. Without an answer it ends the attempt, and its error is
// [runlane.Suspended]: the run is claimed again when one comes.
func (c *Claim) Wait(ctx context.Context, request runlane.WaitRequest) (answer runlane.WaitAnswer, err error) {
	err = c.suspending(ctx, func(x *execution) error {
		answer, err = x.Wait(ctx, request)
		return err
	})
	return answer, err
}

// suspending makes a call that may suspend the attempt. What comes between its look and the suspension is looked for
// again.
func (c *Claim) suspending(ctx context.Context, call func(x *execution) error) error {
	for {
		err := c.owned(ctx, call)
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
