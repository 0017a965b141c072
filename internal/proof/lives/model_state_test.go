package lives

import (
	"cmp"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// model says what the engine must do, in the words of docs/internals/contract.md and docs/internals/design.md and with nothing of core's: maps, slices
// and one instant. Steps happen one after the other, so it knows what follows each.
type model struct {
	now   time.Time
	runs  map[runlane.RunID]*modelRun
	order []runlane.RunID // of creation
	gone  []runlane.RunID // pruned
	// owners are the last runs that took an idempotency key. Whether one still owns it is a question of the instant.
	owners   map[modelKey]*modelRun
	fault    string
	sent     []modelSent // what the transport must have been given since the last comparison
	anySent  bool        // the order of attempts decides which, and it is unknown
	schedule *modelSchedule
	changes  int // commits, publications and removals
	// aside are the queues that took nothing in this tick.
	aside map[runlane.QueueName]bool
	// maxAbandoned is how many attempts of a run may end without an outcome.
	maxAbandoned int
	slots, plain modelCatalog
}

// modelCatalog is what ticks have stored of the tasks in a queue.
type modelCatalog struct {
	limit  int
	seen   time.Time        // zero: nothing is stored
	by     *modelDeployment // whose runtime compared last
	merged time.Time        // and when
}

// store compares with the first tick of a deployment, and every half day. What is the same is stored anew after that time.
func (c *modelCatalog) store(d *modelDeployment, limit int, now time.Time) {
	const every = 12 * time.Hour
	if c.by == d && now.Sub(c.merged) < every {
		return
	}
	if c.seen.IsZero() || c.limit != limit || now.Sub(c.seen) >= every {
		c.limit, c.seen = limit, now
	}
	c.by, c.merged = d, now
}

// tells says whether a stranger may go by it.
func (c *modelCatalog) tells(now time.Time) bool {
	return !c.seen.IsZero() && now.Sub(c.seen) <= 48*time.Hour
}

// modelSent is a message for a run whose id may not be known yet.
type modelSent struct {
	run   *modelRun
	delay time.Duration
}

type modelKey struct {
	task runlane.TaskID
	key  string
}

// modelRun is a run as it must look, and what a reader of the run alone cannot see.
type modelRun struct {
	runlane.Run

	task  *task
	row   *modelRow // the latest delivery, while one can be due
	first time.Time // of the publications of this wait for a worker
	slot  bool      // takes up capacity, for as long as its state does
	owner *modelAttempt
	woken modelWait // the wait that the owner's wakeup ended

	requested time.Time // the cancellation
	settled   int       // the last attempt that had an outcome
	beaten    bool      // heartbeats may have come in between: their number is not known
	drained   bool      // and perhaps given a slot first
	jitter    time.Duration
}

// modelRow is a wakeup to publish.
type modelRow struct {
	status     lane.OutboxStatus
	requested  time.Time
	available  time.Time // pending and failed ones
	claimUntil time.Time
	published  time.Time
	attempts   int
}

// modelWait is what a wakeup is for that maintenance leaves alone for a while.
type modelWait struct {
	due   time.Time
	short bool // the transport holds it until then
}

func newModel(now time.Time) *model {
	return &model{now: now, runs: map[runlane.RunID]*modelRun{}, owners: map[modelKey]*modelRun{}, fault: modeSound}
}

// all are the runs in the order in which they were made.
func (m *model) all() []*modelRun {
	runs := make([]*modelRun, 0, len(m.order))
	for _, id := range m.order {
		if run := m.runs[id]; run != nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// limit is how many runs of a key a deployment admits; 0 is any number.
func (d *modelDeployment) bound(queue runlane.QueueName) int {
	if queue == slotQueue {
		return d.limit
	}
	return 0
}

// retains: an active run keeps its idempotency key, a failed one does not, any other for a time from its creation.
func (run *modelRun) retains(now time.Time) bool {
	switch {
	case run.Status.Active():
		return true
	case run.Status == runlane.StatusFailed, run.Retention.WhileActive:
		return false
	default:
		return now.Before(run.CreatedAt.Add(run.Retention.TTL))
	}
}

func (m *model) ownerOf(task runlane.TaskID, key string) *modelRun {
	if owner := m.owners[modelKey{task, key}]; key != "" && owner != nil && owner.retains(m.now) {
		return owner
	}
	return nil
}

func (m *model) holderOf(task runlane.TaskID, key string) *modelRun {
	for _, run := range m.runs {
		if key != "" && run.TaskID == task && run.SingletonKey == key && run.Status.Active() {
			return run
		}
	}
	return nil
}

// owned: a worker has the run, or had it when it died.
func (run *modelRun) owned() bool {
	return run.Status == runlane.StatusRunning || run.Status == runlane.StatusCancellationRequested
}

func (run *modelRun) reserved(now time.Time) bool {
	return run.Status == runlane.StatusQueued && run.slot && now.Before(run.DispatchExpiresAt)
}

// occupies: capacity counts running runs that took a slot, however long, and reservations until they end.
func (run *modelRun) occupies(now time.Time) bool {
	return run.owned() && run.slot || run.reserved(now)
}

func (m *model) occupied(queue runlane.QueueName, key string) (n int) {
	for _, run := range m.runs {
		if run.Queue == queue && run.ConcurrencyKey == key && run.occupies(m.now) {
			n++
		}
	}
	return n
}

// dueAt is when a worker may take the run; none may take one whose cancellation was requested.
func (run *modelRun) dueAt() time.Time {
	switch {
	case run.owned():
		return run.Lease.ExpiresAt
	case run.Status == runlane.StatusQueued && run.RunAt.IsZero():
		return run.UpdatedAt
	default:
		return run.RunAt
	}
}

// wantsSlotAt is from when the run stands in line for a slot.
func (run *modelRun) wantsSlotAt() time.Time {
	if run.Status == runlane.StatusQueued && run.DispatchExpiresAt.After(run.dueAt()) {
		return run.DispatchExpiresAt
	}
	return run.dueAt()
}

func (run *modelRun) dead() bool { return run.row != nil && run.row.status == lane.OutboxDeadLettered }

// waiting are the runs of a partition that stand in line, in its order: longest first.
func (m *model) waiting(queue runlane.QueueName, key string) (line []modelDue) {
	for _, run := range m.runs {
		if run.Queue == queue && run.ConcurrencyKey == key && run.Status.Active() && !run.owned() && !run.dead() &&
			!run.reserved(m.now) && !run.wantsSlotAt().After(m.now) {
			line = append(line, modelDue{run.wantsSlotAt(), run})
		}
	}
	sortDue(line)
	return line
}

// modelDue is a run at its place in a scan.
type modelDue struct {
	at  time.Time
	run *modelRun
}

func sortDue(list []modelDue) {
	slices.SortFunc(list, func(a, b modelDue) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.run.ID, b.run.ID)) })
}

// awaited is the wakeup that is on its way to a run, if one is.
func (run *modelRun) awaited() modelWait {
	switch run.Status {
	case runlane.StatusQueued:
		if run.row != nil && (run.row.status == lane.OutboxPublished || run.row.status == lane.OutboxClaimed) {
			return modelWait{due: run.dueAt()}
		}
	case runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased:
		if run.Status == runlane.StatusScheduled && run.row != nil && run.row.status == lane.OutboxPublished {
			return modelWait{due: run.row.published}
		}
		if run.RunAt.Sub(run.UpdatedAt) <= maxDelay {
			return modelWait{due: run.RunAt, short: true}
		}
	case runlane.StatusRunning, runlane.StatusCancellationRequested:
		return run.woken
	default:
	}
	return modelWait{}
}

// underway: maintenance leaves a run alone that its wakeup surely reaches: for a minute after it became due, 30 s after a short wait.
func (m *model) underway(run *modelRun, short time.Duration) bool {
	w := run.awaited()
	switch {
	case w.due.IsZero():
		return false
	case w.short:
		return w.due.After(m.now.Add(-short))
	default:
		return w.due.After(m.now.Add(-time.Minute))
	}
}

const modelShortPatience = 30 * time.Second

// changed is what every commit does to a run.
func (m *model) changed(run *modelRun, events int64) {
	m.changes++
	run.EventSequence += events
	run.UpdatedAt = m.now
}

// leave takes the run from its owner, its slot and its delivery.
func (run *modelRun) leave() {
	run.Lease, run.owner, run.slot, run.row = runlane.Lease{}, nil, false, nil
	run.DispatchedAt, run.DispatchExpiresAt = time.Time{}, time.Time{}
}

func (m *model) finish(run *modelRun, status runlane.Status, failure runlane.ErrorCode) {
	m.changed(run, 1)
	run.leave()
	run.Status, run.FinishedAt, run.Failure = status, m.now, runlane.Failure{Code: failure}
}

// request asks for a wakeup at once, with a slot or without one, and publishes it. A bounded run without a slot gets none.
func (m *model) request(run *modelRun, reserve time.Duration, sends bool) {
	m.changed(run, 1)
	run.leave()
	run.Status, run.RunAt = runlane.StatusQueued, m.now
	if reserve > 0 {
		run.slot, run.DispatchedAt, run.DispatchExpiresAt = true, m.now, m.now.Add(reserve)
	}
	if sends {
		run.row = &modelRow{requested: m.now, available: m.now}
		m.publish(run)
	}
}

// publish hands the run's wakeup to the transport and records the outcome.
func (m *model) publish(run *modelRun) {
	m.changes++
	row := run.row
	row.status, row.claimUntil = lane.OutboxClaimed, m.now.Add(30*time.Second)
	switch m.fault {
	case modeRefuses:
		row.attempts++
		row.status, row.available = lane.OutboxFailed, m.now.Add(min(time.Second<<(row.attempts-1), 5*time.Minute))
		if row.attempts >= 10 {
			row.status = lane.OutboxDeadLettered
		}
	case modeRejects:
		row.attempts++
		row.status = lane.OutboxDeadLettered
	case modeOut, modeBroken:
		row.status = lane.OutboxFailed
		row.available = m.now.Add(min(max(m.now.Sub(row.requested), time.Second), 5*time.Minute))
	case modeUnmarked:
		m.sends(run, 0)
	default:
		m.sends(run, 0)
		row.status, row.published = lane.OutboxPublished, m.now
		if run.first.IsZero() {
			run.first = m.now
		}
	}
}

// sends reports whether the transport takes a message.
func (m *model) sends(run *modelRun, delay time.Duration) bool {
	if m.fault != modeSound && m.fault != modeUnmarked {
		return false
	}
	m.sent = append(m.sent, modelSent{run, delay})
	return true
}

// wakeLater sends a wakeup for a wait that the transport can hold.
func (m *model) wakeLater(run *modelRun, wait time.Duration) {
	if wait <= maxDelay {
		m.sends(run, max(wait, 0))
	}
}

// lostAt is when a published wakeup counts as lost: 10 minutes after the first publication, then after twice that, at most 6 hours.
func (run *modelRun) lostAt() time.Time {
	return run.row.published.Add(min(run.row.published.Sub(run.first)+10*time.Minute, 6*time.Hour))
}

// handOver gives a freed slot to the run of its partition that waits longest.
func (m *model) handOver(d *modelDeployment, run *modelRun) {
	limit := d.bound(run.Queue)
	if limit == 0 || m.occupied(run.Queue, run.ConcurrencyKey) >= limit {
		return
	}
	if line := m.waiting(run.Queue, run.ConcurrencyKey); len(line) > 0 {
		m.reserve(line[0].run)
	}
}

// reserve keeps a slot: for 2 minutes, or twice as long as the last time when no worker came, at most an hour.
func (m *model) reserve(run *modelRun) {
	span := 2 * time.Minute
	if run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero() {
		span = max(span, min(2*run.DispatchExpiresAt.Sub(run.DispatchedAt), time.Hour))
	}
	m.request(run, span, true)
}

// abandoned counts the attempts in a row, up to the last one, whose lease ended without an outcome.
func (run *modelRun) abandoned() int { return run.Counters.Attempts - run.settled }

// atBound: the run's worker is gone, and this happened too often.
func (m *model) atBound(run *modelRun) bool {
	return run.Status == runlane.StatusRunning && !m.now.Before(run.Lease.ExpiresAt) && run.abandoned() >= m.maxAbandoned
}

// failAbandoned ends such a run, and gives its slot away.
func (m *model) failAbandoned(d *modelDeployment, run *modelRun) {
	run.Counters.Failures++
	m.finish(run, runlane.StatusFailed, runlane.ErrLeaseExpired)
	m.handOver(d, run)
}
