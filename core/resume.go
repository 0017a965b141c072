package core

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var (
	// waitingStatuses are those of runs that wait for a time.
	waitingStatuses = slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool { return !s.Waiting() })
	// resumable are those of runs that can be resumed: a delayed run of a bounded queue is queued.
	resumable = append(slices.Clone(waitingStatuses), runlane.StatusQueued)
)

// Resume makes a waiting run due now: what is left of its delay, its backoff, its release or its sleep is skipped. The
// reason is kept with the event. Counters and the last failure stay, and so does the run's retry budget. The returned run is as
// the call left it: queued, or, of a bounded queue, in its status and due, until it has a slot. A wakeup that is
// refused does not fail the call: the outbox keeps it. Errors:
//
//   - runlane.ErrValidationFailed: the run does not wait for a time, or the options are wrong (then nothing was read).
//     A queued run that is due has its delivery, or waits for a slot; when the delivery was given up,
//     [DeadLetters.Requeue] asks for another.
//   - runlane.ErrRunNotFound: there is no such run.
//   - runlane.ErrStorageConflict: the run changed during each try; call again.
func (r *Runs) Resume(ctx context.Context, id runlane.RunID, options *ChangeOptions) (*runlane.Run, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	c, err := r.rt.newChange(options, "ChangeOptions")
	if err != nil {
		return nil, err
	}
	return c.resume(ctx, id)
}

// ResumeAll resumes all waiting runs that match, each as [Runs.Resume] does, at most Cap in one call. Runs that went on
// meanwhile are skipped, and none that waits again is resumed again, also by a call that goes on from Next. Without
// Statuses these are scheduled, retrying and released runs. A delayed run of a bounded queue is queued, and has to be
// meant by that status; those that are due are skipped. A filter that names another status is
// runlane.ErrValidationFailed. Otherwise it behaves as [Runs.CancelAll] does.
func (r *Runs) ResumeAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	return r.rt.bulk(ctx, &bulkCall{
		name:      "resume",
		options:   options,
		allowed:   resumable,
		otherwise: waitingStatuses,
		again:     true,
		one: func(ctx context.Context, c change, id runlane.RunID) (bool, error) {
			run, err := c.resume(ctx, id)
			return run != nil, err
		},
	})
}

// resume commits run.resumed, with a delivery where no slot is needed first.
func (c change) resume(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	for range changeRounds {
		run, err := c.rt.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if c.tooLate(run) {
			return nil, errMovedOn
		}
		at := c.rt.now()
		if delayed := run.Status == runlane.StatusQueued && at.Before(run.RunAt); !delayed && !run.Status.Waiting() {
			return nil, doesNotWait(run)
		}
		if run.Waiting.Has(runlane.WaitingEnds) {
			return nil, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: "the run waits for the runs of its flow that it goes after",
				RunID:   id,
				Hint:    "see the flow; cancel or resume what it waits for",
				Cause:   errMovedOn,
			}
		}
		if err := c.rt.endSleeps(ctx, run, at); err != nil {
			return nil, err
		}
		command, err := c.rt.resumption(run, at, c.actor, &runlane.RunResumed{Reason: c.reason})
		if err != nil {
			return nil, err
		}
		commit, err := c.rt.storage().AppendRunEvents(ctx, command)
		switch {
		case isConflict(err, runlane.ConflictEventSequence):
			continue
		case err != nil:
			return nil, err
		}
		c.rt.resumed(ctx, commit)
		return commit.Run, nil
	}
	return nil, changedTooOften(id)
}

// endSleeps lets the sleep for which a run waits be over, the one that ends first: its handler would only sleep on. What
// would end the wait before it, such as a time limit, keeps its moment. The record is written before the run goes on,
// which is the later of the two that an interrupted call can leave out.
func (rt *Runtime) endSleeps(ctx context.Context, run *runlane.Run, at time.Time) error {
	if !run.Waiting.Has(runlane.WaitingTime) || !at.Before(run.Waiting.Until) {
		return nil
	}
	records, err := rt.records(ctx, run)
	if err != nil {
		return err
	}
	first, untils := time.Time{}, make([]time.Time, len(records))
	for i := range records {
		r, until := &records[i], &untils[i]
		if r.Kind != runlane.StepKindSleep || r.Fault != "" || json.Unmarshal(r.Result, until) != nil ||
			until.Before(run.Waiting.Until) { // of no call that the run waits for
			*until = time.Time{}
		} else if first.IsZero() || until.Before(first) {
			first = *until
		}
	}
	for i := range records {
		r := &records[i]
		if untils[i].IsZero() || !untils[i].Equal(first) {
			continue
		}
		if r.Result, err = json.Marshal(runlane.UTCMillis(at)); err != nil {
			return err
		}
		r.Attempt, r.At = run.Counters.Attempts, latest(at, r.At.Add(time.Millisecond))
		_, err := rt.storage().KeepRecord(ctx, &lane.KeepCommand{
			RunKey:    lane.RunKey{Environment: rt.environment, RunID: run.ID},
			CreatedAt: run.CreatedAt,
			Record:    *r,
			Replace:   true,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// resumed follows a commit that has ended a run's wait.
func (rt *Runtime) resumed(ctx context.Context, commit *lane.Commit) {
	if result := rt.publishCommitted(ctx, commit.Outbox); result.Err != nil {
		rt.logRun(ctx, commit.Run, "wakeup was not published; the outbox keeps it", result.Err)
	}
	rt.handOver(ctx, commit.Run) // of a bounded queue: it waits for a slot, and one may be free
}

// resumeWaiting lets a run that waits for something else than a time go on.
func (rt *Runtime) resumeWaiting(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error {
	command, err := rt.resumption(run, rt.now(), runlane.SystemActor, body)
	if err != nil {
		return err
	}
	commit, err := rt.storage().AppendRunEvents(ctx, command)
	if err == nil {
		rt.resumed(ctx, commit)
	}
	return err
}

// resumption is the command that ends a run's wait, with a delivery where no slot is needed first.
func (rt *Runtime) resumption(
	run *runlane.Run, at time.Time, actor runlane.Actor, body *runlane.RunResumed,
) (*lane.AppendCommand, error) {
	initial, bodies := lane.InitialOutbox{}, []runlane.EventBody{body}
	if !rt.policy(run.Queue).Bounded() {
		initial.ClaimUntil = at.Add(outboxClaim)
		bodies = append(bodies, &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment: rt.environment,
			RunID:       run.ID,
			Queue:       run.Queue,
			AvailableAt: at,
			RequestedAt: at,
		}})
	}
	events := make([]runlane.Event, len(bodies))
	for i, body := range bodies {
		events[i] = runlane.Event{
			RunID:       run.ID,
			Environment: rt.environment,
			OccurredAt:  at,
			Actor:       actor,
			Body:        body,
		}
	}
	transition, err := rt.transition(run, events)
	if err != nil {
		return nil, err
	}
	return &lane.AppendCommand{Transition: transition, Outbox: initial}, nil
}

// doesNotWait refuses a run that cannot be resumed.
func doesNotWait(run *runlane.Run) error {
	hint := "ask Runs().Explain what it waits for"
	if run.Status.Terminal() {
		hint = "a finished run never changes again; rerun it"
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("the run is %s: only what waits for a time is resumed", run.Status),
		RunID:   run.ID,
		Hint:    hint,
		Cause:   errMovedOn,
	}
}
