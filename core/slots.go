package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// handOverRounds is how often a process that freed a slot chooses another run, when another process took the one it
	// chose before.
	handOverRounds = 5
)

// handOver offers the slot that a run no longer holds to the run that has waited longest with the same key. Best
// effort: the tick reserves slots that remain free.
func (rt *Runtime) handOver(ctx context.Context, run *runlane.Run) {
	queue := rt.policy(run.Queue)
	if !queue.Bounded() {
		return
	}
	limited := afterCommit(ctx)
	defer limited.stop()
	for range handOverRounds {
		lost, err := rt.offerSlot(limited, queue, run.ConcurrencyKey)
		if err != nil {
			rt.logRun(ctx, run, "freed slot was not reserved for the next run; the tick reserves it", err)
		}
		if !lost {
			return
		}
	}
}

// offerSlot reserves for the next run of a key. lost is true when another process moved that run on.
func (rt *Runtime) offerSlot(ctx context.Context, queue runlane.Queue, key string) (lost bool, err error) {
	at := rt.now()
	page, err := rt.storage().ListRunsNeedingDispatch(ctx, &lane.DueQuery{
		PageQuery:      lane.PageQuery{Environment: rt.environment, Limit: 1},
		At:             at,
		Queues:         []runlane.QueueName{queue.Name},
		Bounded:        []runlane.Queue{queue},
		ConcurrencyKey: &key,
	})
	if err != nil || len(page.Items) == 0 {
		return false, err
	}
	runs, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment: rt.environment, IDs: []runlane.RunID{page.Items[0].RunID}, WithoutPayload: true,
	})
	if err != nil || len(runs) == 0 || !waitsForSlot(runs[0], at) {
		return err == nil, err
	}
	return rt.reserveAndPublish(ctx, runs[0], at)
}

// dispatch reserves slots of bounded queues for runs that wait for one, partition by partition, and for those whose
// worker is gone.
func (t *tick) dispatch(ctx context.Context) StageResult {
	if len(t.rt.bounded) == 0 {
		return StageResult{}
	}
	now := t.rt.now()
	list := func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
		return t.rt.storage().ListRunsNeedingDispatch(ctx, q)
	}
	return t.paged(ctx, list, t.query(now), func(refs []lane.RunRef) StageResult {
		return t.reserveAll(ctx, refs, now)
	})
}

func (t *tick) reserveAll(ctx context.Context, refs []lane.RunRef, now time.Time) StageResult {
	runs, err := t.runs(ctx, refs)
	if err != nil {
		return StageResult{Err: err}
	}
	var mu sync.Mutex
	var outbox []lane.OutboxMessage
	result := t.each(ctx, runs, func(ctx context.Context, run *runlane.Run) (bool, error) {
		n, err := t.rt.atBound(ctx, run, now)
		switch {
		case err != nil:
			return false, err
		case n > 0:
			if _, err := t.rt.failAbandoned(ctx, run, now, n); err != nil {
				return false, err
			}
			mu.Lock()
			defer mu.Unlock()
			t.result.Abandoned.Done++
			t.elsewhere++
			return false, nil
		case run.Status == runlane.StatusRunning && !run.Lease.Expired(now),
			run.Status != runlane.StatusRunning && !waitsForSlot(run, now):
			return false, nil
		}
		got, err := t.rt.reserve(ctx, run, now)
		if err != nil {
			return false, err
		}
		switch {
		case got.Outcome == lane.LostCapacity && run.Status == runlane.StatusRunning:
			// The run started without a slot. Now it waits for one, and nothing is sent before.
			_, err := t.rt.requestDelivery(ctx, run, now)
			return err == nil, err
		case got.Outcome != lane.Acquired:
			return false, lostSlot(run, got.Outcome)
		}
		mu.Lock()
		defer mu.Unlock()
		outbox = append(outbox, got.Commit.Outbox...)
		return true, nil
	})
	published := t.rt.publish(ctx, mine(outbox), t.aside)
	result.Failed += published.Failed
	result.Err = errors.Join(result.Err, published.Err)
	return result
}

// lostSlot is the conflict of a reservation that another process made first.
func lostSlot(run *runlane.Run, outcome lane.Outcome) error {
	kind := runlane.ConflictEventSequence
	if outcome == lane.LostCapacity {
		kind = runlane.ConflictQueueCapacity
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageConflict,
		Conflict:  kind,
		RunID:     run.ID,
		Message:   "no slot was reserved: " + string(outcome),
		Retryable: true,
	}
}
