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
	// waitingStatuses are the statuses of runs that wait for a time.
	waitingStatuses = slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool { return !s.Waiting() })
	// resumable are the statuses that Resume accepts: a delayed run of a bounded queue is queued.
	resumable = append(slices.Clone(waitingStatuses), runlane.StatusQueued)
)

// Resume makes a waiting run due now: it skips the rest of the delay, backoff, release or sleep. The reason is kept
// with the event. Counters, the last failure and the retry budget stay. The returned run is queued, or, in a bounded
// queue, due in its old status until it has a slot. If the wakeup is refused, the outbox keeps it. Errors:
//
//   - runlane.ErrValidationFailed: the run does not wait for a time, or the options are wrong (then it read no run). A
//     due queued run has its delivery, or waits for a slot; after a dead letter, [DeadLetters.Requeue] requests
//     another.
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

// ResumeAll resumes all matching runs as [Runs.Resume] does, at most Cap in one call. It skips runs that went on
// meanwhile, and resumes no run twice, even across calls with Next. Without Statuses it matches scheduled, retrying and
// released runs. Delayed runs of a bounded queue need the status queued; due ones are skipped. Other statuses are
// runlane.ErrValidationFailed. Otherwise it behaves like [Runs.CancelAll].
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

// resume commits run.resumed, with a delivery request if the run needs no slot.
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
			return nil, notWaiting(run)
		}
		if run.Waiting.Has(runlane.WaitingEnds) {
			return nil, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: "the run waits for earlier nodes of its flow",
				RunID:   id,
				Hint:    "see the flow; cancel or resume these nodes",
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

// endSleeps ends the run's sleep that would end first: otherwise its handler would go on sleeping. Other limits of the
// wait stay. It writes the record before the run goes on, since an interrupted call may lose the later write.
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
			until.Before(run.Waiting.Until) { // not of a call that the run waits for
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

// resumed follows a commit that ended a run's wait.
func (rt *Runtime) resumed(ctx context.Context, commit *lane.Commit) {
	if result := rt.publishCommitted(ctx, commit.Outbox); result.Err != nil {
		rt.logRun(ctx, commit.Run, "wakeup was not published; the outbox keeps it", result.Err)
	}
	rt.wants(ctx, commit.Run) // in a bounded queue the run waits for a slot
}

// resumeWaiting resumes a run that does not wait for a time.
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

// resumption is the command that ends a run's wait, with a delivery request if the run needs no slot.
func (rt *Runtime) resumption(
	run *runlane.Run, at time.Time, actor runlane.Actor, body *runlane.RunResumed,
) (*lane.AppendCommand, error) {
	initial, bodies := lane.InitialOutbox{}, []runlane.EventBody{body}
	if !rt.policy(run.Queue).Bounded() {
		initial.ClaimUntil = at.Add(outboxClaim)
		bodies = append(bodies, rt.deliveryNow(run, at))
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

func notWaiting(run *runlane.Run) error {
	hint := "ask Runs().Explain what it waits for"
	if run.Status.Terminal() {
		hint = "a finished run never changes again; rerun it"
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("the run is %s; only runs that wait for a time can be resumed", run.Status),
		RunID:   run.ID,
		Hint:    hint,
		Cause:   errMovedOn,
	}
}
