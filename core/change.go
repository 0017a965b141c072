package core

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// changeRounds is how often an operator's change is tried while other processes change the run.
const changeRounds = 5

// Cancel asks for the end of a run, and keeps the reason with the event. A waiting run is cancelled at once. A running
// one becomes cancellation_requested: its worker ends the handler's context with runlane.ErrCancelRequested and records
// the handler's outcome. It notices at once if this runtime executes the attempt, otherwise with the next heartbeat. If
// the worker is gone, maintenance finishes the cancellation. The returned run is as the call left it.
//
// A second Cancel changes nothing and is no error. Errors:
//
//   - runlane.ErrValidationFailed: the run is finished, or the options are wrong (checked before any read).
//   - runlane.ErrRunNotFound: there is no such run.
//   - runlane.ErrStorageConflict: the run changed during each try; call again.
func (r *Runs) Cancel(ctx context.Context, id runlane.RunID, options *ChangeOptions) (*runlane.Run, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	c, err := r.rt.newChange(options, "ChangeOptions")
	if err != nil {
		return nil, err
	}
	run, _, err := c.cancel(ctx, id)
	return run, err
}

type change struct {
	rt     *Runtime
	actor  runlane.Actor
	reason string
	begun  time.Time // of a bulk call that skips runs changed since; zero: none is skipped
}

// tooLate reports a run that changed after the bulk call began.
func (c change) tooLate(run *runlane.Run) bool {
	return !c.begun.IsZero() && run.UpdatedAt.After(c.begun)
}

func (rt *Runtime) newChange(options *ChangeOptions, what string) (change, error) {
	actor, reason, err := options.settle(what)
	return change{rt: rt, actor: actor, reason: reason}, err
}

// cancel reports whether it changed the run.
func (c change) cancel(ctx context.Context, id runlane.RunID) (run *runlane.Run, changed bool, err error) {
	if err := id.Validate(); err != nil {
		return nil, false, err
	}
	for range changeRounds {
		run, err = c.rt.get(ctx, id)
		if err != nil {
			return nil, false, err
		}
		var body runlane.EventBody = &runlane.RunCancelled{Reason: c.reason}
		switch {
		case run.Status.Terminal():
			return nil, false, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: fmt.Sprintf("the run is %s: there is nothing to cancel", run.Status),
				RunID:   id,
				Hint:    "a finished run never changes again",
				Cause:   errMovedOn,
			}
		case run.Status == runlane.StatusCancellationRequested:
			c.rt.executing.cancel(run.Lease.Token)
			return run, false, nil
		case run.Status == runlane.StatusRunning:
			body = &runlane.RunCancellationRequested{Reason: c.reason}
		}
		commit, err := c.append(ctx, run, c.rt.now(), nil, lane.InitialOutbox{}, body)
		switch {
		case isConflict(err, runlane.ConflictEventSequence):
			continue
		case err != nil:
			return nil, false, err
		}
		if lane.HoldsSlot(run) && !lane.HoldsSlot(commit.Run) {
			c.rt.handOver(ctx, commit.Run)
		}
		c.rt.notifyIfPending(ctx, commit, commit.Run)
		if commit.Run.Status == runlane.StatusCancellationRequested {
			c.rt.executing.cancel(commit.Run.Lease.Token)
		}
		return commit.Run, true, nil
	}
	return nil, false, changedTooOften(id)
}

// append commits events in the operator's name to the given state of a run.
func (c change) append(
	ctx context.Context,
	run *runlane.Run,
	at time.Time,
	meta map[string]string,
	initial lane.InitialOutbox,
	bodies ...runlane.EventBody,
) (*lane.Commit, error) {
	events := make([]runlane.Event, len(bodies))
	for i, body := range bodies {
		events[i] = runlane.Event{
			RunID:       run.ID,
			Environment: c.rt.environment,
			OccurredAt:  at,
			Actor:       c.actor,
			Meta:        meta,
			Body:        body,
		}
	}
	transition, err := c.rt.transition(run, events)
	if err != nil {
		return nil, err
	}
	return c.rt.storage().AppendRunEvents(ctx, &lane.AppendCommand{Transition: transition, Outbox: initial})
}

// eventMeta carries the reason if the event has no field for it.
func (c change) eventMeta() map[string]string {
	if c.reason == "" {
		return nil
	}
	return map[string]string{metaReason: c.reason}
}

// changedTooOften is the error after the last of changeRounds.
func changedTooOften(id runlane.RunID) error {
	conflict := runlane.NewConflict(
		runlane.ConflictEventSequence,
		fmt.Sprintf("the run changed during each of %d tries", changeRounds),
	)
	conflict.RunID, conflict.Hint = id, "call again"
	return conflict
}
