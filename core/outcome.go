package core

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
	"github.com/runlane/runlane-go/lane"
)

const (
	// commitTime limits the commit of an outcome when an attempt is cut short.
	commitTime = 5 * time.Second
	// While the lease lives, an outcome that cannot be written is retried after pauses from outcomeBackoffBase to
	// outcomeBackoffMax.
	outcomeBackoffBase = 50 * time.Millisecond
	outcomeBackoffMax  = 2 * time.Second

	reasonShutdown = "shutdown"
	reasonDeadline = "deadline"
)

// outcomeBody returns the event that ends the attempt. After a requested cancellation every event ends the run.
func (x *execution) outcomeBody(c *ownerCommand, run *runlane.Run, v verdict, at time.Time) runlane.EventBody {
	task, attempt := x.handler.Task, run.Counters.Attempts
	requested := run.Status == runlane.StatusCancellationRequested
	switch v.kind {
	case verdictSucceeded:
		c.succeeded = runlane.RunSucceeded{Attempt: attempt, Output: x.takeOutput()}
		return &c.succeeded
	case verdictReleased:
		if requested {
			return &runlane.RunCancelled{}
		}
		if v.delay > 0 && v.reason == reasonShutdown {
			v.reason += " (handler)" // the bare reason would keep its place in an ordered queue
		}
		resume := at.Add(v.delay)
		if v.wait != nil {
			resume = v.wait.Due()
		}
		return &runlane.RunReleased{Attempt: attempt, ResumeAt: ceilMillis(resume), Reason: v.reason, Wait: v.wait}
	case verdictStopped:
		if requested {
			return &runlane.RunCancelled{}
		}
		if !timedOut(v.cause) {
			resume := at
			if v.lingers {
				resume = latest(at, run.Lease.ExpiresAt)
			}
			return &runlane.RunReleased{Attempt: attempt, ResumeAt: ceilMillis(resume), Reason: x.stopReason()}
		}
		v.failure = timeoutFailure()
	case verdictFailed:
		if requested && v.chosen {
			return &runlane.RunCancelled{}
		}
	}
	if n := run.Counters.Failures + 1; !requested && !v.final && n < task.Retry.Attempts() {
		return &runlane.RunRetryScheduled{
			Attempt: attempt,
			Failure: v.failure,
			RetryAt: ceilMillis(at.Add(x.rt.retryDelay(task, v, n))),
		}
	}
	return &runlane.RunFailed{Attempt: attempt, Failure: v.failure}
}

func (x *execution) stopReason() string {
	if x.cut {
		return reasonDeadline
	}
	return reasonShutdown
}

// timedOut reports whether the attempt's time or the caller's deadline ended it. Other stops cost the run nothing.
func timedOut(cause error) bool {
	return errors.Is(cause, runlane.ErrTimeout) || errors.Is(cause, context.DeadlineExceeded)
}

func timeoutFailure() runlane.Failure {
	return runlane.NewFailure(runlane.ErrTaskTimedOut, "The attempt's time is over.", nil)
}

// retryDelay is the wait after failure number n. A delay chosen by the handler is used unchanged: a server that answers
// "not before" means it.
func (rt *Runtime) retryDelay(task *runlane.Definition, v verdict, n int) time.Duration {
	if v.chosen {
		return min(v.delay, runlane.MaxReleaseDelay)
	}
	delay := min(backoffDelay(task.Retry, n), runlane.MaxReleaseDelay)
	if task.Retry.NoJitter {
		return delay
	}
	return rt.world.around(delay)
}

const backoffTime = time.Second

// backoffDelay survives an application's backoff that panics, ends its goroutine or does not return. The run must get
// its outcome, so it then uses the default delay.
func backoffDelay(r runlane.Retry, n int) time.Duration {
	switch r.Backoff.(type) {
	case nil, runlane.Exponential, runlane.Fixed:
		return r.Delay(n)
	}
	answer := make(chan time.Duration, 1)
	go func() { // ends with the backoff
		delay := runlane.Exponential{}.Delay(n)
		defer func() { answer <- delay }()
		_ = caught(func() { delay = r.Delay(n) })
	}()
	timer := time.NewTimer(backoffTime)
	defer timer.Stop()
	select {
	case delay := <-answer:
		return delay
	case <-timer.C:
		return runlane.Exponential{}.Delay(n)
	}
}

// finish writes the outcome. It survives the caller's context: losing finished work costs more than a late answer.
func (x *execution) finish(ctx context.Context, v verdict) (*DeliveryResult, error) {
	x.stopped = v.kind == verdictStopped
	if x.rt.failed != nil && x.rt.texts.log && v.text != "" {
		x.rt.failed(string(x.started.ID), v.text)
	}
	run := x.stopWatching()
	x.ending = detachedContext{} // reset: a suspension that missed a signal is followed by another outcome
	limited := x.ending.start(ctx, x.leaseLeft(run))
	defer limited.stop()
	c := newOwnerCommand()
	defer c.done()
	unknown := (*runlane.Run)(nil) // the run that a failed try may have written
	for wait := outcomeBackoffBase; ; wait = min(2*wait, outcomeBackoffMax) {
		if run == nil || x.lost.Load() {
			return x.lostResult(limited), nil
		}
		at := x.rt.now()
		c.events[0] = runlane.Event{
			RunID:       run.ID,
			Environment: x.rt.environment,
			OccurredAt:  at,
			Actor:       x.actor(),
			Meta:        v.meta,
			Body:        x.outcomeBody(c, run, v, at),
		}
		projected, err := x.append(limited, run, c, v.look())
		switch {
		case err == nil:
			return x.ended(limited, projected, v, at), nil
		case isConflict(err, runlane.ConflictLeaseOwnership):
			return x.lostResult(limited), nil
		case isConflict(err, runlane.ConflictEventSequence):
			current, readErr := x.reread(limited)
			if readErr != nil {
				err = readErr
				break
			}
			if unknown != nil && sameState(current, unknown) {
				return x.ended(limited, unknown, v, at), nil
			}
			if run = x.ownRun(current, run.Payload); run == nil {
				return x.lostResult(limited), nil
			}
			continue
		case v.kind == verdictSucceeded && errors.Is(err, runlane.ErrValidationFailed):
			// The storage cannot hold the output. Success without it would be wrong.
			v = failedWith(err, x.texts())
			continue
		}
		if !errors.Is(err, runlane.ErrStorageUnavailable) || !pause(limited, x.rt.world.around(wait)) {
			return nil, err
		}
		if projected != nil {
			unknown = projected
		}
	}
}

// append projects the command's event and commits it under the lease token. It returns the projection even with a
// storage error.
func (x *execution) append(
	ctx context.Context, run *runlane.Run, c *ownerCommand, look *lane.Look,
) (*runlane.Run, error) {
	events, room := c.events[:1], x.spare
	if room == nil {
		room = new(runlane.Run)
	}
	x.spare = nil // a failed try may have been written: its projection is compared later
	projected, err := reducer.ProjectInto(room, run, run.EventSequence, events)
	if err != nil {
		return nil, err
	}
	c.append = lane.AppendCommand{LeaseToken: x.token, Look: look, Transition: lane.Transition{
		ExpectedSequence: run.EventSequence,
		Events:           events,
		Projected:        projected,
		Queue:            x.rt.policy(run.Queue),
		WithoutRecords:   !x.rt.watched,
	}}
	commit, err := x.rt.storage().AppendRunEvents(ctx, &c.append)
	if err == nil {
		x.rt.notifyIfPending(ctx, commit, projected)
	}
	return projected, err
}

func sameState(current, written *runlane.Run) bool {
	return current != nil && current.EventSequence == written.EventSequence && current.Status == written.Status &&
		current.UpdatedAt.Equal(written.UpdatedAt) && current.Counters == written.Counters
}

// ended logs a recorded outcome, offers the freed slot to the next run, and wakes a worker for a short wait.
func (x *execution) ended(ctx context.Context, run *runlane.Run, v verdict, at time.Time) *DeliveryResult {
	x.rt.handOver(ctx, run)
	level, message := slog.LevelDebug, "attempt ended"
	switch {
	case run.Status.Waiting() && !run.Waiting.Timed() && run.RunAt.Sub(at) > aheadTime: // a tick sends ahead
	case run.Status.Waiting():
		x.rt.wakeLater(ctx, run, run.RunAt.Sub(at))
		// Readers who ask why it waits find the text at the usual log level.
		if run.Status == runlane.StatusRetrying {
			level = slog.LevelInfo
		}
	case run.Status == runlane.StatusFailed:
		level, message = slog.LevelWarn, "run failed"
	default:
	}
	if !x.rt.hostShows || run.Failure.Code == "" {
		x.rt.logOutcome(ctx, level, message, run, x.workerID, x.loggedText(run, v))
	}
	return x.reported(run)
}

func (x *execution) reported(run *runlane.Run) *DeliveryResult {
	x.result = DeliveryResult{Run: run}
	return &x.result
}

// lostResult is for an attempt that may have lost its run to another worker: its outcome is not recorded.
func (x *execution) lostResult(ctx context.Context) *DeliveryResult {
	x.rt.logOutcome(ctx, slog.LevelWarn, "lease lost; nothing of the attempt is recorded", x.started, x.workerID, "")
	return &DeliveryResult{Run: x.started, Ignored: IgnoredAbandoned}
}

// loggedText is the log's text of a failure, without its code.
func (x *execution) loggedText(run *runlane.Run, v verdict) string {
	if !x.rt.texts.log {
		return ""
	}
	return cmp.Or(v.text, run.Failure.Message)
}

// logOutcome logs the outcome of an attempt. text is the failure's, "" without one.
func (rt *Runtime) logOutcome(
	ctx context.Context, level slog.Level, message string, run *runlane.Run, workerID, text string,
) {
	if !rt.logger.Enabled(ctx, level) {
		return
	}
	attrs := append(runAttrs(run), slog.String(attrWorkerID, workerID))
	if run.Failure.Code != "" {
		attrs = append(attrs, slog.String(attrCode, string(run.Failure.Code)))
		if text != "" {
			attrs = append(attrs, slog.String(attrError, text))
		}
	}
	rt.logger.LogAttrs(ctx, level, message, attrs...)
}
