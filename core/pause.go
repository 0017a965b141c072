package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// pauseSettles is how long after a change of the pauses a process may still act on the former ones: their age in
	// its memory, the difference of two clocks, and the delay of an index. A search for runs that waited begins after
	// it. Lanes near the process have exact pauses and need no time.
	pauseSettles = lane.MaxPausesAge + 2*clockSkew
	// wakingTime is how long one process has the search to itself.
	wakingTime = time.Minute
	// wokenKept is how long wakeups of an ordered queue that its runs no longer need are recognized: longer than the
	// longest distance at which they are handed back.
	wokenKept = 2 * time.Minute
	// unboundKept is how long the entry of a resumed queue waits for a process with its binding. The queue of a mistyped
	// name has none.
	unboundKept = 24 * time.Hour
	// wokenAtOnce limits the runs that Resume wakes itself; the tick wakes the rest.
	wokenAtOnce = runlane.MaxPageLimit
)

// errPaused marks a wakeup that keeps its place in an ordered queue while a pause begins or ends.
var errPaused = errors.New("runlane: paused")

// PauseOptions of [Queues.Pause] and [Tasks.Pause]. nil means until someone resumes, by runlane.OperatorActor.
type PauseOptions struct {
	// ChangeOptions: the reason is kept with the pause, at most lane.MaxPauseReasonBytes.
	ChangeOptions
	// Until ends the pause. The zero time means until someone resumes.
	Until time.Time
}

// Pause keeps runs of the queue from starting until [Queues.Resume], or until PauseOptions.Until. Triggers and schedules
// still create runs, attempts in progress go on, runs that wait do not resume, and cancellations finish. Processes on
// the lanes in memory and in a file know it at once, on DynamoDB within 5 seconds. Pausing again replaces until, actor
// and reason. Any queue is allowed, even an unknown one. Errors:
//
//   - runlane.ErrValidationFailed: the options are wrong, or lane.MaxPauses queues and tasks are paused.
//   - runlane.ErrStorageConflict: other pauses changed during each try; call again.
func (q *Queues) Pause(ctx context.Context, name runlane.QueueName, options *PauseOptions) (*lane.Pause, error) {
	return q.rt.pause(ctx, lane.Pause{Queue: name}, name.Validate, options)
}

// Resume ends the pause of a queue. Its runs that are due get new wakeups: the first ones at once, all others from the
// next ticks, even if this process dies. A queue that is not paused is runlane.ErrValidationFailed. The entry that it
// returns stays in [Queues.Pauses] until all runs have their wakeup.
func (q *Queues) Resume(ctx context.Context, name runlane.QueueName, options *ChangeOptions) (*lane.Pause, error) {
	return q.rt.resumePaused(ctx, lane.Pause{Queue: name}, name.Validate, options)
}

// Pauses returns the paused queues and tasks, and those that are being resumed. Exact.
func (q *Queues) Pauses(ctx context.Context) ([]lane.Pause, error) {
	if err := q.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer q.rt.gate.leave()
	p, err := q.rt.readPauses(ctx, true)
	return p.Entries, err
}

// Pause keeps runs of the task from starting, in all queues, as [Queues.Pause] does for a queue.
func (t *Tasks) Pause(ctx context.Context, id runlane.TaskID, options *PauseOptions) (*lane.Pause, error) {
	return t.rt.pause(ctx, lane.Pause{Task: id}, id.Validate, options)
}

// Resume ends the pause of a task, as [Queues.Resume] does for a queue.
func (t *Tasks) Resume(ctx context.Context, id runlane.TaskID, options *ChangeOptions) (*lane.Pause, error) {
	return t.rt.resumePaused(ctx, lane.Pause{Task: id}, id.Validate, options)
}

// readPauses returns none for a storage that keeps none.
func (rt *Runtime) readPauses(ctx context.Context, exact bool) (lane.Pauses, error) {
	p, err := rt.storage().GetPauses(ctx, lane.PausesQuery{Environment: rt.environment, Exact: exact})
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return lane.Pauses{}, nil
	}
	return p, err
}

// exactPauses reports whether reading pauses is always exact, because they are in this process's memory or near it.
func (rt *Runtime) exactPauses() bool {
	_, near := lane.As[nearStorage](rt.storage())
	return near || rt.storage().Capabilities().ProcessLocalState
}

// pausedQueues are the queues to leave alone, for scans. Pauses that cannot be read hold nothing back here: each run is
// judged again before it starts.
func (rt *Runtime) pausedQueues(ctx context.Context) (names []runlane.QueueName) {
	p, err := rt.readPauses(ctx, false)
	if err != nil || len(p.Entries) == 0 {
		return nil
	}
	now := rt.now()
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Queue != "" && e.Active(now) {
			names = append(names, e.Queue)
		}
	}
	return names
}

func (rt *Runtime) queuePaused(ctx context.Context, queue runlane.QueueName) bool {
	return slices.Contains(rt.pausedQueues(ctx), queue)
}

// activePause is the pause that holds back runs of the queue and task, or nil.
func activePause(entries []lane.Pause, queue runlane.QueueName, task runlane.TaskID, now time.Time) *lane.Pause {
	for i := range entries {
		if e := &entries[i]; e.Covers(queue, task) && e.Active(now) {
			return e
		}
	}
	return nil
}

// paused reports whether the wakeup will be ignored for a pause.
func (d *delivery) paused(ctx context.Context, run *runlane.Run) (bool, error) {
	p, err := d.rt.readPauses(ctx, false)
	if err != nil || d.byWakeup && d.rt.ordered(run.Queue) {
		return false, err
	}
	return activePause(p.Entries, run.Queue, run.TaskID, d.rt.now()) != nil, nil
}

// judgePauses reports a run that a pause holds back. In an ordered queue a wakeup keeps its place (errPaused) while not
// all processes know the pause, and until the runs that wait have their new wakeups, in their order. From then on a
// wakeup is dropped if a later one was requested for its run.
func (d *delivery) judgePauses(ctx context.Context, run *runlane.Run, now time.Time) (Ignored, error) {
	if d.unread { // even if the pause ended a moment ago: then another wakeup comes
		return IgnoredPaused, nil
	}
	p, err := d.rt.readPauses(ctx, false)
	if err != nil || len(p.Entries) == 0 {
		return "", err
	}
	ordered := d.byWakeup && d.rt.ordered(run.Queue)
	if e := activePause(p.Entries, run.Queue, run.TaskID, now); e != nil {
		if ordered && !d.rt.exactPauses() && now.Sub(e.Since) < pauseSettles {
			return "", keepsPlace(run.ID, e)
		}
		return IgnoredPaused, nil
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		switch {
		case !ordered || !e.Covers(run.Queue, run.TaskID) || run.Status != runlane.StatusQueued:
		case d.wakeup.RequestedAt.Before(run.UpdatedAt):
			return IgnoredPaused, nil
		case e.WokenAt.IsZero():
			return "", keepsPlace(run.ID, e)
		}
	}
	return "", nil
}

func keepsPlace(id runlane.RunID, p *lane.Pause) error {
	e := runlane.NewConflict(runlane.ConflictPauses, "the pause of "+p.Name()+" is beginning or ending")
	e.RunID, e.Retryable, e.Cause = id, true, errPaused
	e.Hint = "redeliver the wakeup after a delay: it keeps its place in the ordered queue"
	return e
}

// freePausedSlot frees the slot of a run whose task is paused, for runs of other tasks in its queue. The run gets
// another one when its reservation has ended. Best effort.
func (d *delivery) freePausedSlot(ctx context.Context, run *runlane.Run) {
	rt, at := d.rt, d.rt.now()
	if !rt.policy(run.Queue).Bounded() || !lane.ReservationActive(run, at) || rt.givenBack.has(run) ||
		rt.queuePaused(ctx, run.Queue) {
		return
	}
	rt.releaseSlot(ctx, run, at)
}

// refusePaused refuses to start a run of a paused queue or task at once.
func (rt *Runtime) refusePaused(ctx context.Context, queue runlane.QueueName, task runlane.TaskID) error {
	p, err := rt.readPauses(ctx, false)
	if err != nil {
		return err
	}
	paused := activePause(p.Entries, queue, task, rt.now())
	if paused == nil {
		return nil
	}
	e := runlane.NewConflict(runlane.ConflictPauses, paused.Name()+" is paused")
	e.Retryable, e.Hint = true, "resume it, or trigger the run: it starts after the pause"
	return e
}

// editPauses changes the pauses of the environment while other processes do. edit returns false for no change.
func (rt *Runtime) editPauses(ctx context.Context, edit func(*lane.Pauses) (bool, error)) error {
	var last error
	for range changeRounds {
		p, err := rt.storage().GetPauses(ctx, lane.PausesQuery{Environment: rt.environment, Exact: true})
		if err != nil {
			return err
		}
		if changed, err := edit(&p); err != nil || !changed {
			return err
		}
		_, last = rt.storage().PutPauses(ctx, &lane.PutPausesCommand{Environment: rt.environment, Pauses: p})
		if !isConflict(last, runlane.ConflictPauses) {
			return last
		}
	}
	return last
}

func findPause(p *lane.Pauses, of *lane.Pause) int {
	return slices.IndexFunc(p.Entries, func(e lane.Pause) bool { return e.Same(of) })
}

func (rt *Runtime) pause(
	ctx context.Context, pause lane.Pause, valid func() error, options *PauseOptions,
) (*lane.Pause, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if options == nil {
		options = &PauseOptions{}
	}
	c, err := rt.newChange(&options.ChangeOptions, "PauseOptions")
	if err := firstError(err, valid()); err != nil {
		return nil, err
	}
	now, until := runlane.UTCMillis(rt.now()), runlane.UTCMillis(options.Until)
	switch {
	case len(c.reason) > lane.MaxPauseReasonBytes:
		return nil, invalidInput(fmt.Sprintf("use at most %d bytes", lane.MaxPauseReasonBytes),
			"PauseOptions.Reason has %d bytes", len(c.reason))
	case !until.IsZero() && !until.After(now):
		return nil, invalidInput("use a later time, or none", "Until, the end of the pause, has passed")
	}
	pause.Since, pause.Until, pause.Actor, pause.Reason = now, until, c.actor, c.reason
	err = rt.editPauses(ctx, func(p *lane.Pauses) (bool, error) {
		at := findPause(p, &pause)
		if at < 0 {
			p.Entries = append(p.Entries, pause)
		} else {
			if p.Entries[at].Active(now) {
				pause.Since = p.Entries[at].Since
			}
			p.Entries[at] = pause
		}
		return true, tooManyPauses(p)
	})
	if err != nil {
		return nil, err
	}
	return &pause, nil
}

func tooManyPauses(p *lane.Pauses) error {
	n := 0
	for i := range p.Entries {
		if p.Entries[i].ResumedAt.IsZero() {
			n++
		}
	}
	if n <= lane.MaxPauses && len(p.Entries) < 2*lane.MaxPauses {
		return nil
	}
	return invalidInput("resume some first", "at most %d queues and tasks can be paused", lane.MaxPauses)
}

func (rt *Runtime) resumePaused(
	ctx context.Context, pause lane.Pause, valid func() error, options *ChangeOptions,
) (*lane.Pause, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if _, err := rt.newChange(options, "ChangeOptions"); err != nil {
		return nil, err
	}
	if err := valid(); err != nil {
		return nil, err
	}
	now := runlane.UTCMillis(rt.now())
	err := rt.editPauses(ctx, func(p *lane.Pauses) (bool, error) {
		at := findPause(p, &pause)
		if at < 0 {
			return false, invalidInput("list the queues or the tasks to see what is paused", "%s is not paused", pause.Name())
		}
		e := &p.Entries[at]
		again := !e.ResumedAt.IsZero()
		if !again {
			e.ResumedAt = now
			if !e.Until.IsZero() && e.Until.Before(now) {
				e.ResumedAt = e.Until
			}
		}
		pause = *e
		return !again, nil
	})
	if err != nil {
		return nil, err
	}
	rt.wakeAfterResume(ctx, &pause)
	return &pause, nil
}

// wakeAfterResume wakes the first runs at once. Best effort: the tick wakes all, see [tick.wakePaused].
func (rt *Runtime) wakeAfterResume(ctx context.Context, pause *lane.Pause) {
	t := &tick{rt: rt, limit: defaultTickLimit, aside: &queuesAside{queues: rt.pausedQueues(ctx)}, result: &TickResult{}}
	var result StageResult
	if rt.exactPauses() {
		t.limit = wokenAtOnce
		for _, stage := range []func(context.Context) StageResult{t.deliver, t.dispatch, t.wakePaused, t.flush} {
			result.add(stage(ctx))
		}
	} else {
		_, page, held := t.wakePage(ctx, pause, "", lane.MaxPausesAge+time.Second) // then every process knows
		result.add(page)
		result.Err = errors.Join(result.Err, held)
	}
	if result.Err != nil {
		rt.logger.WarnContext(ctx, "runs of "+pause.Name()+" were not all woken at once; the tick wakes them",
			"error", result.Err)
	}
}
