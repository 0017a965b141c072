package lives

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// modelCall is a request for a run, by any caller.
type modelCall struct {
	d       *modelDeployment
	task    *task
	payload payload
	options runlane.TriggerOptions
	source  runlane.Source
	parent  runlane.RunID // whose handler triggers
	now     bool          // executes at once, without a wakeup
	illegal bool          // the options contradict each other
}

// modelAnswer is what a request must be answered with, if it makes no run.
type modelAnswer struct {
	existing *modelRun
	differs  bool
	code     runlane.ErrorCode
	conflict runlane.ConflictKind
	about    runlane.RunID // in the error
}

func (c *modelCall) bytes() []byte {
	b, err := json.Marshal(c.payload)
	if err != nil {
		panic(err)
	}
	return b
}

// concurrencyKey is what the options say, else what the task computes.
func (c *modelCall) concurrencyKey() string {
	if c.options.ConcurrencyKey != "" {
		return c.options.ConcurrencyKey
	}
	return c.payload.Key
}

// runAt is when the run may start, zero for at once.
func (c *modelCall) runAt(now time.Time) time.Time {
	at := c.options.RunAt
	if c.options.Delay > 0 {
		at = now.Add(c.options.Delay)
	}
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// resolve finds what stands in the way of a new run. created is true when nothing does.
func (m *model) resolve(c *modelCall) (answer modelAnswer, created bool) {
	differs := func(run *modelRun) bool { return string(run.Payload) != string(c.bytes()) }
	if c.illegal {
		return modelAnswer{code: runlane.ErrValidationFailed}, false
	}
	if c.now && c.task.strange {
		return modelAnswer{code: runlane.ErrTaskNotFound}, false
	}
	if owner := m.ownerOf(c.task.id, c.options.IdempotencyKey); owner != nil {
		if differs(owner) && c.options.StrictPayload {
			return modelAnswer{code: runlane.ErrValidationFailed, about: owner.ID}, false
		}
		return modelAnswer{existing: owner, differs: differs(owner)}, false
	}
	if same := m.runs[c.options.RunID]; same != nil {
		if same.TaskID != c.task.id || differs(same) {
			return modelAnswer{code: runlane.ErrValidationFailed, about: same.ID}, false
		}
		return modelAnswer{existing: same}, false
	}
	if holder := m.holderOf(c.task.id, c.options.SingletonKey); holder != nil {
		if c.options.ReturnActive && holder.ID != c.parent {
			return modelAnswer{existing: holder, differs: differs(holder)}, false
		}
		return modelAnswer{code: runlane.ErrStorageConflict, conflict: runlane.ConflictSingletonKey, about: holder.ID}, false
	}
	if limit := c.d.bound(c.task.queue); c.now && limit > 0 && m.occupied(c.task.queue, c.concurrencyKey()) >= limit {
		return modelAnswer{code: runlane.ErrStorageConflict, conflict: runlane.ConflictQueueCapacity}, false
	}
	return modelAnswer{}, true
}

// create makes the run that nothing stands in the way of.
func (m *model) create(c *modelCall, id runlane.RunID) *modelRun {
	o := &c.options
	run := &modelRun{task: c.task, Run: runlane.Run{
		ID: id, Environment: runlane.DefaultEnvironment, TaskID: c.task.id, Queue: c.task.queue, Status: runlane.StatusQueued,
		Payload: c.bytes(), ConcurrencyKey: c.concurrencyKey(), IdempotencyKey: o.IdempotencyKey, SingletonKey: o.SingletonKey,
		Source: c.source, Meta: o.Meta, CreatedAt: m.now,
	}}
	if run.Source.Type == "" {
		run.Source = runlane.Source{Type: runlane.SourceTrigger, RunID: c.parent}
	}
	if o.IdempotencyKey != "" {
		switch {
		case o.IdempotencyTTL == runlane.WhileActive:
			run.Retention.WhileActive = true
		case o.IdempotencyTTL > 0:
			run.Retention.TTL = o.IdempotencyTTL
		default:
			run.Retention.TTL = c.task.ttl
		}
		m.owners[modelKey{c.task.id, o.IdempotencyKey}] = run
	}
	is := func(other runlane.RunID) bool { return other == id }
	m.gone, m.order = slices.DeleteFunc(m.gone, is), slices.DeleteFunc(m.order, is) // the id of a pruned run is free
	m.runs[id] = run
	m.order = append(m.order, id)
	m.changed(run, 1)
	if !c.now {
		m.begin(c, run)
	}
	return run
}

// begin is how a new run comes to wait: for its time, for a slot, or for a worker.
func (m *model) begin(c *modelCall, run *modelRun) {
	limit, later := c.d.bound(run.Queue), c.runAt(m.now)
	row := &modelRow{requested: m.now, available: m.now, status: "pending"}
	switch {
	case !later.IsZero() && limit > 0: // nothing is asked for before it is due
		run.RunAt = later
	case !later.IsZero():
		m.changed(run, 1)
		run.Status, run.RunAt, run.row, row.available = runlane.StatusScheduled, later, row, later
	case limit > 0 && m.occupied(run.Queue, run.ConcurrencyKey) >= limit:
	default:
		m.changed(run, 1)
		run.RunAt, run.row = m.now, row
		if limit > 0 {
			run.slot, run.DispatchedAt, run.DispatchExpiresAt = true, m.now, m.now.Add(2*time.Minute)
		}
	}
	switch {
	case c.options.Deferred:
	case !later.IsZero():
		m.wakeLater(run, later.Sub(m.now))
	case run.row != nil:
		m.publish(run)
	}
}

// remove forgets a finished run, and the idempotency key if it is still its own.
func (m *model) remove(run *modelRun) {
	m.changes++
	key := modelKey{run.TaskID, run.IdempotencyKey}
	if m.owners[key] == run {
		delete(m.owners, key)
	}
	delete(m.runs, run.ID)
	m.gone = append(m.gone, run.ID)
}
