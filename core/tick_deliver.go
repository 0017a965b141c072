package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// deliver requests a wakeup for every due or recovered run, publishes due rows, and sends delayed wakeups ahead of long
// waits. Like paged it continues after failures.
func (t *tick) deliver(ctx context.Context) StageResult {
	var result StageResult
	for {
		passed, err := t.scan(ctx, t.limit-result.Done)
		before := result
		result.Err = errors.Join(result.Err, err)
		result.add(t.wake(ctx, t.due))
		if result.passedSince(&before) && len(t.due) > 0 {
			passed++
		}
		result.Passed += passed
		t.due = nil
		if err != nil || !t.moreDue || result.Done >= t.limit || result.Failed >= failuresOfALimit*t.limit ||
			ctx.Err() != nil {
			break
		}
		t.scanOn()
	}
	result.More = t.moreDue && (result.Done > 0 || result.Passed > 0)
	result.add(t.sendAhead(ctx))
	return result
}

// wake requests deliveries, or publishes the rows that runs already have.
func (t *tick) wake(ctx context.Context, due []lane.RunRef) StageResult {
	var waiting []lane.RunRef
	var rows []string
	for _, ref := range due {
		if ref.OutboxID != "" {
			rows = append(rows, ref.OutboxID)
		} else {
			waiting = append(waiting, ref)
		}
	}
	result := t.request(ctx, waiting, true)
	for batch := range slices.Chunk(rows, publishBatch) {
		result.add(t.rt.publishRows(ctx, batch, t.aside))
	}
	return result
}

// request appends run.delivery_requested to each run, with rows claimed in the same commit, and publishes them in the
// order of refs, which is the delivery order of an ordered queue. It checks the limit of abandoned attempts again, as
// every commit that recovers a run must.
func (t *tick) request(ctx context.Context, refs []lane.RunRef, recovers bool) StageResult {
	runs, err := t.runs(ctx, refs)
	if err != nil {
		return StageResult{Err: err}
	}
	var pauses lane.Pauses
	if len(runs) > 0 {
		if pauses, err = t.rt.readPauses(ctx, false); err != nil {
			return StageResult{Err: err}
		}
	}
	var mu sync.Mutex
	requested := make(map[runlane.RunID]*lane.Commit, len(runs))
	now := t.rt.now()
	result := t.each(ctx, runs, func(ctx context.Context, run *runlane.Run) (bool, error) {
		switch due, ok := lane.DeliveryRecoveryAt(run); {
		case !recovers:
			if run.Status != runlane.StatusQueued {
				return false, nil
			}
		case !ok || now.Before(due):
			return false, nil
		}
		if n, err := t.rt.abandonedTooOften(ctx, run, now); err != nil || n > 0 {
			if err == nil {
				_, err = t.rt.failAbandoned(ctx, run, now, n)
			}
			return err == nil, err
		}
		if activePause(pauses.Entries, run.Queue, run.TaskID, now) != nil {
			return false, nil // its wakeup would be ignored
		}
		commit, err := t.rt.requestDelivery(ctx, run, now)
		if err != nil {
			return false, err
		}
		mu.Lock()
		requested[run.ID] = commit
		mu.Unlock()
		return true, nil
	})
	var outbox []lane.OutboxMessage
	for _, run := range runs {
		if commit := requested[run.ID]; commit != nil {
			outbox = append(outbox, commit.Outbox...)
		}
	}
	published := t.rt.publish(ctx, withoutUnclaimed(outbox), t.aside)
	result.Failed += published.Failed
	result.Err = errors.Join(result.Err, published.Err)
	return result
}

// sendAhead sends delayed wakeups for waits that end before the tick after the next, so that they end on the second.
func (t *tick) sendAhead(ctx context.Context) StageResult {
	if !t.rt.delays {
		return StageResult{}
	}
	now := t.rt.now()
	q := t.query(now.Add(aheadTime))
	q.Without = t.aside.queues
	// The time is in the future, so add it to the patience: short waits already have their wakeup.
	q.Patience.Queued += aheadTime
	q.Patience.ShortWait += aheadTime
	var refs []lane.RunRef
	for pages := 0; pages < aheadPages; {
		page, err := t.rt.storage().ListRunsNeedingDelivery(ctx, &q)
		if err != nil {
			return StageResult{Err: err}
		}
		if len(page.Items) > 0 {
			pages++ // late wakeups are for the next ticks
		}
		for _, ref := range t.known(page.Items) {
			if ref.Status != runlane.StatusRunning && ref.AvailableAt.After(now) &&
				t.rt.canDelay(ref.Queue, ref.AvailableAt.Sub(now)) {
				refs = append(refs, ref)
			}
		}
		if q.After = page.Next; q.After == "" || len(refs) >= t.limit {
			break
		}
	}
	if len(refs) == 0 {
		return StageResult{}
	}
	wakeups := make([]lane.DelayedWakeup, len(refs))
	for i, ref := range refs {
		wakeups[i] = lane.DelayedWakeup{
			Wakeup: lane.Wakeup{RunKey: ref.RunKey, Queue: ref.Queue, RequestedAt: now},
			Delay:  ref.AvailableAt.Sub(now),
		}
	}
	if err := t.rt.sendDelayed(ctx, wakeups...); err != nil {
		return StageResult{Failed: len(refs), Err: err}
	}
	return StageResult{Done: len(refs)}
}

// redeliver requests published wakeups again that never came. If the earliest are all merely late, because their queues
// have a backlog, it reads again without those queues. Runs of queues unknown here are left to processes that know
// them.
func (t *tick) redeliver(ctx context.Context) StageResult {
	if !t.rt.storage().Capabilities().FindsLostWakeups {
		return StageResult{}
	}
	late := make(map[runlane.QueueName]bool)
	skipped := 0
	q := t.query(t.rt.now())
	q.Without = t.paused
	result := t.paged(ctx, func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
		for {
			page, err := t.rt.storage().ListRunsNeedingRedelivery(ctx, q)
			if err != nil {
				return nil, err
			}
			lost := slices.DeleteFunc(page.Items, func(ref lane.RunRef) bool {
				unknown := t.rt.unknownHere(ref.Queue)
				backlog, known := late[ref.Queue]
				if !known {
					backlog = unknown || t.hasBacklog(ctx, ref.Queue)
					late[ref.Queue] = backlog
				}
				return unknown || backlog && q.At.Sub(ref.AvailableAt) <= maxBacklogWait
			})
			skipped += len(page.Items) - len(lost)
			if len(lost) > 0 || len(page.Items) == 0 || page.Next == "" {
				return &runlane.Page[lane.RunRef]{Items: lost, Next: page.Next}, nil
			}
			q.Without, q.After = slices.Clone(t.paused), "" // all are behind: another queue's wakeup would count as lost
			for _, queue := range slices.Sorted(maps.Keys(late)) {
				if late[queue] {
					q.Without = append(q.Without, queue)
				}
			}
		}
	}, q, func(lost []lane.RunRef) StageResult { return t.request(ctx, lost, false) })
	result.Skipped += skipped
	return result
}

// hasBacklog reports whether a wakeup may still wait in the queue. A queue with unreadable depth has no backlog.
func (t *tick) hasBacklog(ctx context.Context, queue runlane.QueueName) bool {
	visible, _, err := t.rt.lane.Transport.Depth(ctx, queue)
	return err == nil && visible > backlogDepth
}

// flush publishes the remaining rows: deferred rows without a relay, due rows that failed before, and rows of dead
// publishers. Like paged it continues after failures. It leaves rows of queues that refuse all wakeups.
func (t *tick) flush(ctx context.Context) (result StageResult) {
	for {
		now, limit := t.rt.now(), min(t.limit-result.Done, publishBatch)
		rows, err := t.rt.storage().ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
			Environment: t.rt.environment,
			At:          now,
			Patience:    t.query(now).Patience,
			Without:     t.aside.queues,
			Round:       t.of,
			ClaimUntil:  now.Add(outboxClaim),
			Limit:       limit,
		})
		if err != nil {
			result.Err = errors.Join(result.Err, err)
			return result
		}
		result.add(t.rt.publish(ctx, rows, t.aside))
		if len(rows) < limit || result.Done >= t.limit || result.Failed >= failuresOfALimit*t.limit ||
			ctx.Err() != nil {
			result.More = len(rows) == limit && result.Done > 0
			return result
		}
	}
}
