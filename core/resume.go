package core

import (
	"context"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var (
	// waitingStatuses are those of runs that wait for a time.
	waitingStatuses = slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool { return !s.Waiting() })
	// resumable are those of runs that can be resumed: a delayed run of a bounded queue is queued.
	resumable = append(slices.Clone(waitingStatuses), runlane.StatusQueued)
)

// Resume makes a waiting run due now: what is left of its delay, its backoff or its release is skipped. The reason is
// kept with the event. Counters and the last failure stay, and so does the run's retry budget. The returned run is as
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
// meanwhile are skipped. Without Statuses these are scheduled, retrying and released runs. A delayed run of a bounded
// queue is queued, and has to be meant by that status; those that are due are skipped. A filter that names another
// status is runlane.ErrValidationFailed. Otherwise it behaves as [Runs.CancelAll] does.
func (r *Runs) ResumeAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	return r.rt.bulk(ctx, &bulkCall{
		name:      "resume",
		options:   options,
		allowed:   resumable,
		otherwise: waitingStatuses,
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
		at, initial := c.rt.now(), lane.InitialOutbox{}
		if delayed := run.Status == runlane.StatusQueued && at.Before(run.RunAt); !delayed && !run.Status.Waiting() {
			return nil, doesNotWait(run)
		}
		bodies := []runlane.EventBody{&runlane.RunResumed{Reason: c.reason}}
		if !c.rt.policy(run.Queue).Bounded() {
			initial.ClaimUntil = at.Add(outboxClaim)
			bodies = append(bodies, &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
				Environment: c.rt.environment,
				RunID:       id,
				Queue:       run.Queue,
				AvailableAt: at,
				RequestedAt: at,
			}})
		}
		commit, err := c.append(ctx, run, at, nil, initial, bodies...)
		switch {
		case isConflict(err, runlane.ConflictEventSequence):
			continue
		case err != nil:
			return nil, err
		}
		if result := c.rt.publishCommitted(ctx, commit.Outbox); result.Err != nil {
			c.rt.logRun(ctx, commit.Run, "wakeup was not published; the outbox keeps it", result.Err)
		}
		c.rt.handOver(ctx, commit.Run) // of a bounded queue: it waits for a slot, and one may be free
		return commit.Run, nil
	}
	return nil, changedTooOften(id)
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
