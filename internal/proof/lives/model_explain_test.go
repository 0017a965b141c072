package lives

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// modelReason is what an explanation must say.
type modelReason struct {
	wait    core.Wait
	until   time.Time
	holders int
}

// explain says why the run is where it is, to a program that knows these queues. d is nil for a program that knows the default one only,
// and what ticks have stored of the others.
func (m *model) explain(run *modelRun, d *modelDeployment) modelReason {
	tick := modelReason{wait: core.WaitTick, until: m.now.Add(time.Minute)}
	known, limit := d != nil || run.Queue == runlane.DefaultQueue.Name, 0
	switch {
	case d != nil:
		limit = d.bound(run.Queue)
	case run.Queue == slotQueue && m.slots.tells(m.now):
		known, limit = true, m.slots.limit
	case run.Queue == plainQueue:
		known = m.plain.tells(m.now)
	}
	if !known {
		tick = modelReason{wait: core.WaitQueue}
	}
	over := !m.now.Before(run.Lease.ExpiresAt)
	switch {
	case run.Status.Terminal():
		return modelReason{wait: core.WaitNone}
	case run.Status == runlane.StatusCancellationRequested && over, m.atBound(run):
		return modelReason{wait: core.WaitTick, until: m.now.Add(time.Minute)} // whatever the queue
	case run.Status == runlane.StatusCancellationRequested:
		return modelReason{wait: core.WaitCancellation, until: run.Lease.ExpiresAt}
	case run.Status == runlane.StatusRunning && over:
		return tick
	case run.Status == runlane.StatusRunning:
		return modelReason{wait: core.WaitLease, until: run.Lease.ExpiresAt}
	case run.dead():
		return modelReason{wait: core.WaitOperator}
	case run.RunAt.After(m.now):
		return modelReason{wait: core.WaitTime, until: run.RunAt}
	case run.reserved(m.now):
		reason := modelReason{wait: core.WaitReservation, until: run.DispatchExpiresAt}
		if run.row.status != lane.OutboxPublished {
			reason.wait = core.WaitPublish
			if next := m.upcoming(run.row.dueAt()); next.Before(reason.until) {
				reason.until = next
			}
		}
		return reason
	case limit > 0:
		return m.explainSlot(run, limit, tick)
	case run.Status == runlane.StatusQueued && !run.DispatchExpiresAt.IsZero(), run.row == nil:
		return tick
	case run.row.status != lane.OutboxPublished:
		return modelReason{wait: core.WaitPublish, until: m.upcoming(run.row.dueAt())}
	case run.Status == runlane.StatusScheduled:
		return modelReason{wait: core.WaitWakeup, until: m.now.Add(time.Minute)}
	default:
		return modelReason{wait: core.WaitWakeup, until: m.upcoming(run.lostAt())}
	}
}

// upcoming is an instant ahead, or else the next tick.
func (m *model) upcoming(at time.Time) time.Time {
	if at.After(m.now) {
		return at
	}
	return m.now.Add(time.Minute)
}

// explainSlot: the run is due and has no slot.
func (m *model) explainSlot(run *modelRun, limit int, free modelReason) modelReason {
	var first time.Time
	holders := 0
	for _, other := range m.runs {
		if other == run || other.Queue != run.Queue || other.ConcurrencyKey != run.ConcurrencyKey || !other.occupies(m.now) {
			continue
		}
		holders++
		until := other.DispatchExpiresAt
		if other.owned() {
			until = other.Lease.ExpiresAt
		}
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	if holders < limit {
		return free
	}
	return modelReason{wait: core.WaitSlot, until: m.upcoming(first), holders: holders}
}
