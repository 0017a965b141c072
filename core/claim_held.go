package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
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
	id, lease, ok := parseClaim(token)
	if !ok {
		return nil, invalidClaim()
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
		return nil, lostClaim(id)
	case err != nil:
		return nil, err
	case !run.Status.Owned() || run.Lease.Token != lease:
		return nil, lostClaim(id)
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
		return lostClaim(c.Run.ID)
	}
	if err := c.x.rt.gate.enterLate(); err != nil {
		return err
	}
	defer c.x.rt.gate.leave()
	c.x.ctx, c.x.handling = ctx, ctx
	c.judged = false
	err := do(c.x)
	if err == nil && c.x.lost.Load() {
		err = lostClaim(c.Run.ID)
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
			return lostClaim(c.Run.ID)
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
		return firstError(c.end(ctx, verdict{kind: verdictStopped, cause: runlane.ErrTimeout}), lostClaim(c.Run.ID))
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
	if f.After != nil && (*f.After < 0 || f.Permanent) {
		return invalidInput("give a time for what is tried again", "the delay of the failure is %s", *f.After)
	}
	var err error = &runlane.Error{
		Code:    cmp.Or(f.Code, runlane.ErrTaskFailed),
		Message: cmp.Or(f.Message, foreignFailure),
		Meta:    f.Meta,
	}
	switch {
	case f.Permanent:
		err = runlane.Permanent(err)
	case f.After != nil:
		err = runlane.RetryAfter(*f.After, err)
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
	if len(result) > runlane.MaxPayloadBytes || result != nil && !json.Valid(result) {
		return nil, invalidInput("send one JSON value", "the value of the %s is no JSON, or too large", kind)
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
