package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// clockSkew is how far the clocks of two processes may differ: a run that was due as it was written is due, as long as
// its writer's clock is not further ahead.
const clockSkew = 5 * time.Second

// judgement is what a run means for a wakeup, or for a poll worker that found it.
type judgement struct {
	ignored Ignored       // why nothing is executed; "" to continue
	wait    time.Duration // not due: until it is

	at        time.Time // not before this instant, where the writer's clock is ahead of ours
	abandoned int       // not 0: the run is failed, because so many attempts in a row ended without an outcome
	handler   runlane.Handler
	release   func() // to be called when the attempt is over
}

// judge is the one judge of deliveries. It goes by the run as it was read, then by what this process is. The first row
// that fits decides. What follows from each, and when a wakeup that is handed back comes again, is in
// docs/internals/design.md, What a wakeup leads to:
//
//	the run                                        the wakeup
//	is finished                                    is ignored: terminal
//	was asked to stop                              is ignored: its owner ends it, or a tick; as below
//	is of another queue than the wakeup            is ignored: wrong queue
//	has a status of a newer version                is ignored: nothing that this one may touch
//	is owned                                       is ignored: leased; is handed back in an ordered queue
//	is left behind by a shutdown, and not due      is ignored; is handed back in an ordered queue
//	is not due, and something may end its wait     is ignored: a tick sends another ahead
//	is not due                                     is ignored, and sent again with a delay
//	was abandoned too often                        is acknowledged, and the run is failed
//	is of a queue that this process leaves alone   is handed back
//	has a task without a handler here              is handed back
//	has a payload that cannot be read here         is handed back
//	is none that its handler here accepts          is handed back
//	is a suspect, and others execute               comes again, or is handed back
//	may need more time than is left                is handed back
//	anything else                                  leads to a claim
//
// An error hands the wakeup back: nothing was claimed or written, and its transport brings it again later. A run that
// was found by polling is passed over for a while.
func (d *delivery) judge(ctx context.Context, run *runlane.Run, now time.Time, r rules) (judgement, error) {
	j := d.judgeRun(run, now)
	if j.ignored != "" {
		return j, d.holdsPlace(ctx, run, j)
	}
	var err error
	if j.abandoned, err = d.rt.atBound(ctx, run, j.at); err != nil || j.abandoned > 0 {
		return j, err
	}
	if err := d.takes(run); err != nil {
		return judgement{}, err
	}
	var ok bool
	if j.handler, ok = d.handlersHere()[run.TaskID]; !ok {
		return judgement{}, taskNotFound(run.TaskID, run.ID)
	}
	if err := run.PayloadError(); err != nil {
		return judgement{}, err // the run waits for a process that can open it
	}
	if err := accepted(j.handler, run.ID, run.Payload); err != nil {
		return judgement{}, err
	}
	if j.release, j.ignored, err = d.suspect(ctx, run, j.at); err != nil || j.ignored != "" {
		return j, err
	}
	if err := d.room(ctx, run, j.handler.Task, r); err != nil {
		j.release()
		return judgement{}, err
	}
	return j, nil
}

// handlersHere are those of the runtime, or stand for the client that claims.
func (d *delivery) handlersHere() map[runlane.TaskID]runlane.Handler {
	if d.handlers != nil {
		return d.handlers
	}
	return d.rt.handlers
}

// accepted refuses a run that its handler leaves to other processes.
func accepted(h runlane.Handler, id runlane.RunID, payload []byte) error {
	if h.Accepts == nil {
		return nil
	}
	ok := false
	if fault := caught(func() { ok = h.Accepts(payload) }); ok && fault == nil {
		return nil
	}
	return &runlane.Error{
		Code:      runlane.ErrTaskNotFound,
		Message:   fmt.Sprintf("the handler of task %q in this process does not accept the run", h.Task.ID),
		RunID:     id,
		Hint:      "start a process whose handler accepts it",
		Retryable: true,
	}
}

// takes refuses runs of queues that this process leaves alone. Their wakeups come where queues share a binding.
func (d *delivery) takes(run *runlane.Run) error {
	switch {
	case d.rt.unknownHere(run.Queue):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, RunID: run.ID, Retryable: true,
			Message: fmt.Sprintf("queue %q is not known here, so neither is its limit", run.Queue),
			Hint: "let every process that reads the queue's binding know the queue, by a task's Queue or " +
				"Options.Queues, or give the queue a separate binding",
		}
	case d.only != nil && !slices.Contains(d.only, run.Queue):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, RunID: run.ID, Retryable: true,
			Message: fmt.Sprintf("this worker takes no work from queue %q", run.Queue),
			Hint: "add the queue to WorkOptions.Queues, or give it a separate binding, which this worker does " +
				"not read",
		}
	default:
		return nil
	}
}

// judgeRun judges by the run alone: the rows up to "not due".
func (d *delivery) judgeRun(run *runlane.Run, now time.Time) judgement {
	switch {
	case run.Status.Terminal():
		return judgement{ignored: IgnoredTerminal}
	case run.Status == runlane.StatusCancellationRequested:
		return judgement{ignored: IgnoredCancellation}
	case d.wakeup.Queue != "" && d.wakeup.Queue != run.Queue:
		return judgement{ignored: IgnoredWrongQueue}
	}
	due, ok := run.RunnableAt()
	switch {
	case !ok:
		return judgement{ignored: IgnoredClaimLost}
	case run.Status == runlane.StatusRunning && now.Before(due):
		return judgement{ignored: IgnoredLeased}
	case !now.Before(due):
		return judgement{at: now}
	case atOnce(run) && due.Sub(now) <= clockSkew:
		return judgement{at: due}
	default:
		return judgement{ignored: IgnoredNotDue, wait: due.Sub(now)}
	}
}

// atOnce reports a run that was to be executed at once when it was queued, or when a shutdown released it: it was not
// created to be delivered later, and waits for nothing.
func atOnce(run *runlane.Run) bool {
	now := run.Status == runlane.StatusQueued || run.Status == runlane.StatusReleased
	return now && !run.RunAt.After(run.UpdatedAt)
}
