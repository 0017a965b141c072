package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// wakePaused sends new wakeups to the runs of pauses that have ended: theirs were acknowledged meanwhile. Each entry
// stays until one search that began after every process knew of the end has reached all of its queued runs. Runs that
// wait for a time or a slot are found by the other stages again.
func (t *tick) wakePaused(ctx context.Context) (result StageResult) {
	p, err := t.rt.readPauses(ctx, false)
	if err != nil {
		return StageResult{Err: err}
	}
	now := t.rt.now()
	for i := range p.Entries {
		if e := &p.Entries[i]; !e.Active(now) && ctx.Err() == nil {
			result.add(t.wakeRunsOf(ctx, e))
		}
	}
	return result
}

// wakeRunsOf continues the search of one entry, if no other process does.
func (t *tick) wakeRunsOf(ctx context.Context, entry *lane.Pause) StageResult {
	claimed, err := t.claimWaking(ctx, entry)
	if err != nil || claimed == nil {
		return StageResult{Err: unlessPausesChanged(err)}
	}
	next, result := claimed.After, StageResult{}
	var held error
	for {
		var page StageResult
		next, page, held = t.wakePage(ctx, claimed, next, 0)
		result.add(page)
		if next == "" || held != nil || result.Done >= t.limit || ctx.Err() != nil {
			break
		}
	}
	result.More = next != "" && held == nil
	result.Err = errors.Join(result.Err, held)
	over := next == "" && held == nil
	err = t.rt.editPauses(context.WithoutCancel(ctx), func(p *lane.Pauses) (bool, error) {
		at := findPause(p, entry)
		if at < 0 || !p.Entries[at].ResumedAt.Equal(claimed.ResumedAt) ||
			!p.Entries[at].WakingUntil.Equal(claimed.WakingUntil) {
			return false, nil // paused again, or too slow
		}
		e := &p.Entries[at]
		e.WakingUntil, e.After = time.Time{}, next
		switch {
		case !over:
		case t.endsInOrder(e):
			e.WokenAt = runlane.UTCMillis(t.rt.now())
		default:
			p.Entries = slices.Delete(p.Entries, at, at+1)
		}
		return true, nil
	})
	result.Err = errors.Join(result.Err, unlessPausesChanged(err))
	return result
}

// endsInOrder reports whether wakeups of an ordered queue may follow that are to be dropped. Runs of a task may be in
// any queue.
func (t *tick) endsInOrder(e *lane.Pause) bool {
	return e.Task != "" && t.rt.anyOrdered() || e.Queue != "" && t.rt.ordered(e.Queue)
}

// anyOrdered reports whether a queue known or bound here is ordered.
func (rt *Runtime) anyOrdered() bool {
	for name := range rt.queues {
		if rt.ordered(name) {
			return true
		}
	}
	return slices.ContainsFunc(rt.bindings, rt.ordered)
}

// claimWaking gives the search of an entry to this tick. It returns nil if it is not due or another process has it, and
// removes an entry that is over.
func (t *tick) claimWaking(ctx context.Context, entry *lane.Pause) (claimed *lane.Pause, err error) {
	now := runlane.UTCMillis(t.rt.now())
	ended := entry.ResumedAt
	if ended.IsZero() {
		ended = entry.Until
	}
	_, bound := lane.CarrierOf(t.rt.lane.Transport, entry.Queue)
	if entry.Queue != "" && !bound && now.Sub(ended) < unboundKept {
		return nil, nil // a process with a binding wakes them, if there is one
	}
	if !entry.WokenAt.IsZero() && now.Sub(entry.WokenAt) < wokenKept || now.Before(entry.WakingUntil) {
		return nil, nil
	}
	err = t.rt.editPauses(ctx, func(p *lane.Pauses) (bool, error) {
		claimed = nil
		at := findPause(p, entry)
		if at < 0 || p.Entries[at].Active(now) || now.Before(p.Entries[at].WakingUntil) {
			return false, nil
		}
		e := &p.Entries[at]
		if !e.WokenAt.IsZero() {
			over := now.Sub(e.WokenAt) >= wokenKept
			if over {
				p.Entries = slices.Delete(p.Entries, at, at+1)
			}
			return over, nil
		}
		if e.ResumedAt.IsZero() {
			e.ResumedAt = e.Until
		}
		if now.Before(t.rt.settled(e)) {
			return false, nil
		}
		e.WakingUntil = now.Add(wakingTime)
		copied := *e
		claimed = &copied
		return true, nil
	})
	if err != nil {
		claimed = nil
	}
	return claimed, err
}

// settled is when every process knows that a pause has ended. Wakeups that were requested later are not ignored for it.
func (rt *Runtime) settled(ended *lane.Pause) time.Time {
	if rt.exactPauses() {
		return ended.ResumedAt
	}
	return ended.ResumedAt.Add(pauseSettles)
}

// wakePage wakes the queued runs of a page. delay is for processes that may not know the end yet. held is why the page
// has to be tried again. A single run that cannot be written, or a wakeup that stays in the outbox, does not hold it.
func (t *tick) wakePage(
	ctx context.Context, pause *lane.Pause, after runlane.Cursor, delay time.Duration,
) (next runlane.Cursor, result StageResult, held error) {
	filter := RunFilter{Queue: pause.Queue, TaskID: pause.Task, Statuses: []runlane.Status{runlane.StatusQueued}}
	page, err := t.rt.listRuns(ctx, &filter, min(t.limit, runlane.MaxPageLimit), after)
	switch {
	case errors.Is(err, runlane.ErrCapabilityUnsupported):
		return "", result, nil // wakeups that were acknowledged count as lost in time
	case errors.Is(err, runlane.ErrValidationFailed) && after != "":
		return "", result, err
	case err != nil:
		return after, result, err
	}
	all, err := t.rt.readPauses(ctx, false)
	if err != nil {
		return after, result, err
	}
	slices.SortStableFunc(page.Items, func(a, b runlane.RunSummary) int { // lists need not have the order of a queue
		return cmp.Or(a.RunAt.Compare(b.RunAt), a.CreatedAt.Compare(b.CreatedAt))
	})
	now := t.rt.now()
	var requests []lane.RunRef
	var wakeups []lane.DelayedWakeup
	for i := range page.Items {
		run := &page.Items[i]
		key := lane.RunKey{Environment: t.rt.environment, RunID: run.ID}
		bounded := t.rt.policy(run.Queue).Bounded()
		switch {
		case run.RunAt.After(now.Add(clockSkew)), run.RunAt.After(t.rt.settled(pause)) && delay == 0:
		case activePause(all.Entries, run.Queue, run.TaskID, now) != nil: // the end of that pause wakes it
		case bounded && !now.Before(run.DispatchExpiresAt): // it waits for a slot
		case t.rt.canDelay(run.Queue, delay):
			wakeups = append(wakeups, lane.DelayedWakeup{
				Wakeup: lane.Wakeup{RunKey: key, Queue: run.Queue, RequestedAt: now}, Delay: delay,
			})
		case !bounded && !t.rt.unknownHere(run.Queue) && delay == 0:
			requests = append(requests, lane.RunRef{RunKey: key, Queue: run.Queue, Status: run.Status})
		}
	}
	result = t.request(ctx, requests, false)
	if len(wakeups) > 0 {
		if err := t.rt.sendDelayed(ctx, wakeups...); err != nil {
			result.Failed += len(wakeups)
			return after, result, err
		}
		result.Done += len(wakeups)
	}
	if errors.Is(result.Err, runlane.ErrStorageUnavailable) || errors.Is(result.Err, runlane.ErrOperationCancelled) {
		held, result.Err = result.Err, nil
		return after, result, held
	}
	return page.Next, result, nil
}

func unlessPausesChanged(err error) error {
	if isConflict(err, runlane.ConflictPauses) {
		return nil
	}
	return err
}
