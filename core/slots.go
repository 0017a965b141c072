package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// handOverRounds limits how many runs a process tries after it freed a slot. Each try can lose its run to another
// process.
const handOverRounds = 5

// handOver offers the slot that run freed to the longest-waiting run with the same key. Best effort: the tick reserves
// slots that stay free.
func (rt *Runtime) handOver(ctx context.Context, run *runlane.Run) {
	queue := rt.policy(run.Queue)
	if queue.Concurrency > 0 {
		rt.offerNext(ctx, queue, run)
	}
}

// wants makes a run of a bounded queue get a slot or a ticket that is free, after a commit that made it due.
func (rt *Runtime) wants(ctx context.Context, run *runlane.Run) {
	if queue := rt.policy(run.Queue); queue.Rated() && queue.Concurrency == 0 {
		rt.reserveFreed(ctx, run)
		return
	}
	rt.handOver(ctx, run)
}

// offerNext offers a slot or a ticket to the longest-waiting run with the same key as run.
func (rt *Runtime) offerNext(ctx context.Context, queue runlane.Queue, run *runlane.Run) {
	if rt.queuePaused(ctx, queue.Name) {
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

// offerSlot reserves a slot for the next run of a key. On DynamoDB the list leaves the slot that it found to the
// reservation. lost is true when another process moved that run on.
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

// dispatch reserves slots of bounded queues, partition by partition, for runs that wait for one and for runs that lost
// their worker.
func (t *tick) dispatch(ctx context.Context) StageResult {
	if len(t.rt.bounded) == 0 {
		return StageResult{}
	}
	now := t.rt.now()
	list := func(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
		return t.rt.storage().ListRunsNeedingDispatch(ctx, q)
	}
	q := t.query(now)
	q.Without = t.aside.queues
	return t.paged(ctx, list, q, func(refs []lane.RunRef) StageResult {
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
		n, err := t.rt.abandonedTooOften(ctx, run, now)
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
			// The run started without a slot. Now it waits for one; send no wakeup before.
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
	published := t.rt.publish(ctx, withoutUnclaimed(outbox), t.aside)
	result.Failed += published.Failed
	result.Err = errors.Join(result.Err, published.Err)
	return result
}

// lostSlot is the conflict when another process reserved first.
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

// reservationMax caps reservations. They double while no worker claims the run.
const reservationMax = time.Hour

// reservationTime returns how long a slot is kept for the run's worker. It doubles after a reservation that expired
// unclaimed: otherwise a wakeup that is always a little late never finds its slot. The run's last reservation has its
// begin and end, so no count is needed.
func reservationTime(run *runlane.Run, q runlane.Queue, at time.Time) time.Duration {
	timeout := lane.DispatchTimeout(q)
	if !lane.ReservationExpired(run, at) {
		return timeout
	}
	doubled := 2 * run.DispatchExpiresAt.Sub(run.DispatchedAt)
	return max(timeout, min(doubled, reservationMax))
}

// reserve reserves a slot for the run and requests its wakeup, in one commit. This process publishes the outbox row.
// Any outcome but lane.Acquired means a lost race.
func (rt *Runtime) reserve(ctx context.Context, run *runlane.Run, at time.Time) (*lane.Acquisition, error) {
	queue, start := rt.policy(run.Queue), time.Time{}
	if queue.Rated() {
		var ok bool
		var err error
		if start, ok, err = rt.takeTicket(ctx, queue, run.ConcurrencyKey, at); err != nil || !ok {
			return &lane.Acquisition{Outcome: lane.LostCapacity}, err
		}
	}
	return rt.reserveFor(ctx, run, at, start)
}

// reserveFor is reserve with a ticket for start; zero without a rate. Such a reservation never lasts longer: its end
// says when the ticket is, see lane.TicketTime.
func (rt *Runtime) reserveFor(
	ctx context.Context, run *runlane.Run, at, start time.Time,
) (*lane.Acquisition, error) {
	queue := rt.policy(run.Queue)
	request := rt.deliveryNow(run, at)
	request.Delivery.DispatchExpiresAt = at.Add(reservationTime(run, queue, at))
	if !start.IsZero() {
		request.Delivery.DispatchExpiresAt = start.Add(lane.DispatchTimeout(queue))
	}
	transition, err := rt.systemEvent(run, at, request)
	if err != nil {
		return nil, err
	}
	got, err := rt.storage().ReserveRunDispatch(ctx, &lane.ReserveCommand{
		Transition: transition, At: at, Outbox: lane.InitialOutbox{ClaimUntil: at.Add(outboxClaim)},
	})
	if err == nil && got.Outcome == lane.Acquired {
		holdUntil(got.Commit.Outbox, start)
	}
	return got, err
}

// reserveAndPublish reserves a slot for a run and sends its wakeup. lost is true when another process moved the run on.
func (rt *Runtime) reserveAndPublish(ctx context.Context, run *runlane.Run, at time.Time) (lost bool, err error) {
	got, err := rt.reserve(ctx, run, at)
	return rt.publishReserved(ctx, got, err)
}

func (rt *Runtime) publishReserved(ctx context.Context, got *lane.Acquisition, err error) (lost bool, _ error) {
	switch {
	case err != nil:
		return false, err
	case got.Outcome == lane.Acquired:
		return false, rt.publishCommitted(ctx, got.Commit.Outbox).Err
	default:
		return got.Outcome != lane.LostCapacity, nil
	}
}

// reserveFreed reserves a slot for a run that was just created without one: a process that freed a slot meanwhile may
// not have seen the run. Best effort, like handOver.
func (rt *Runtime) reserveFreed(ctx context.Context, run *runlane.Run) {
	if !rt.policy(run.Queue).Bounded() || rt.queuePaused(ctx, run.Queue) {
		return
	}
	limited := afterCommit(ctx)
	defer limited.stop()
	if _, err := rt.reserveAndPublish(limited, run, rt.now()); err != nil {
		rt.logRun(ctx, run, "no slot was reserved for the new run; the tick reserves one", err)
	}
}

// giveBackSlot frees the slot of a run that this process cannot execute. Such runs would block their queue for up to an
// hour each. It waits for a quarter of the queue's dispatch time: the wakeup may reach a process that can execute the
// run. The run does not change, and gets no other slot until its reservation ends or such a process asks for one
// ([delivery.wantSlot]). Best effort: the reservation ends by itself.
func (d *delivery) giveBackSlot(ctx context.Context, run *runlane.Run, at time.Time, why error) {
	rt, queue := d.rt, d.rt.policy(run.Queue)
	if !d.byWakeup || !queue.Bounded() || !lane.ReservationActive(run, at) || !d.cannotExecute(run, why) {
		return
	}
	if at.Sub(run.DispatchedAt) < lane.DispatchTimeout(queue)/4 || rt.givenBack.has(run) {
		return
	}
	rt.releaseSlot(ctx, run, at)
}

// releaseSlot frees the slot of a run that will not start here, for the next run. Best effort: time frees it.
func (rt *Runtime) releaseSlot(ctx context.Context, run *runlane.Run, at time.Time) {
	released, err := rt.storage().ReleaseRunDispatch(ctx, &lane.ReleaseDispatchCommand{
		RunKey:    lane.RunKey{Environment: rt.environment, RunID: run.ID},
		ExpiresAt: run.DispatchExpiresAt,
		At:        at,
	})
	if err != nil {
		rt.logRun(ctx, run, "the slot of a run that does not start here was not given back; time frees it", err)
		return
	}
	rt.givenBack.add(run)
	if released {
		rt.handOver(ctx, run)
	}
}

// wantSlot makes a run wait for a slot again if this process can execute it and another process gave its slot back.
// Otherwise the run would wait for its reservation's end. Best effort.
func (d *delivery) wantSlot(ctx context.Context, run *runlane.Run, at time.Time) {
	if !lane.ReservationActive(run, at) {
		return
	}
	commit, err := d.rt.requestDelivery(ctx, run, at)
	switch {
	case isConflict(err, runlane.ConflictEventSequence):
		return // another process moved it on
	case err != nil:
		d.rt.logRun(ctx, run, "a run without its slot waits for its reservation's end", err)
		return
	}
	d.rt.reserveFreed(ctx, commit.Run)
}

// givenBack remembers the reservations that this process gave back, because their wakeups are redelivered.
type givenBack struct {
	mu    sync.Mutex
	until map[runlane.RunID]time.Time
}

// givenBackKept bounds the memory. Forgetting costs one request that changes nothing.
const givenBackKept = 10_000

func (g *givenBack) has(run *runlane.Run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until[run.ID].Equal(run.DispatchExpiresAt)
}

func (g *givenBack) add(run *runlane.Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil || len(g.until) >= givenBackKept {
		g.until = map[runlane.RunID]time.Time{}
	}
	g.until[run.ID] = run.DispatchExpiresAt
}

// cannotExecute reports whether no delivery to this process can execute the run. A process that ignores the queue
// knows nothing about its runs.
func (d *delivery) cannotExecute(run *runlane.Run, why error) bool {
	return d.checkServed(run) == nil && (errors.Is(why, runlane.ErrTaskNotFound) ||
		errors.Is(why, runlane.ErrPayloadUnreadable) || errors.Is(why, runlane.ErrConfigurationInvalid))
}

// waitsForSlot reports whether the run is due and has no slot. Running runs are left to the tick's recovery.
func waitsForSlot(run *runlane.Run, at time.Time) bool {
	if run.Status == runlane.StatusRunning || lane.ReservationActive(run, at) {
		return false
	}
	due, ok := lane.RunnableAt(run)
	return ok && !at.Before(due)
}
