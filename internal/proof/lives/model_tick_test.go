package lives

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// tick is one round of maintenance: each stage does something for at most so many rows, in the order in which they became due.
func (m *model) tick(d *modelDeployment, limit int) {
	m.aside = map[runlane.QueueName]bool{}
	m.finalizeCancellations(d, limit)
	m.deliver(d, limit)
	m.sendAhead(d, limit)
	m.redeliver(d, limit)
	if m.schedule != nil {
		m.schedule.evaluate(m, d)
	}
	if d.limit > 0 {
		m.dispatch(d, limit)
	}
	m.flush(limit)
	m.slots.store(d, d.limit, m.now)
	m.plain.store(d, 0, m.now)
}

// scan lists what is due by an instant that the choice says; ok is false for what is of no concern to the scan.
func (m *model) scan(choice func(run *modelRun) (at time.Time, ok bool), limit int) []modelDue {
	list := m.scanUntil(choice, m.now)
	return list[:min(limit, len(list))]
}

func (m *model) scanUntil(choice func(run *modelRun) (at time.Time, ok bool), until time.Time) (list []modelDue) {
	for _, run := range m.runs {
		if at, ok := choice(run); ok && !at.After(until) {
			list = append(list, modelDue{at, run})
		}
	}
	sortDue(list)
	return list
}

func (m *model) finalizeCancellations(d *modelDeployment, limit int) {
	for _, due := range m.scan(func(run *modelRun) (time.Time, bool) {
		return run.Lease.ExpiresAt, run.Status == runlane.StatusCancellationRequested && !m.underway(run, modelShortPatience)
	}, limit) {
		m.finish(due.run, runlane.StatusCancelled, "")
		m.handOver(d, due.run)
	}
}

// needsDelivery: a waiting run that is due, or one whose worker is gone; of a bounded queue, dispatch looks after it.
func (m *model) needsDelivery(d *modelDeployment) func(run *modelRun) (time.Time, bool) {
	return func(run *modelRun) (time.Time, bool) {
		switch run.Status {
		case runlane.StatusScheduled, runlane.StatusRetrying, runlane.StatusReleased, runlane.StatusRunning:
			return run.dueAt(), d.bound(run.Queue) == 0 && !run.dead() && !m.underway(run, modelShortPatience)
		default:
			return time.Time{}, false
		}
	}
}

// deliver looks behind rows for which nothing can be done, up to ten times the limit of those that fail.
func (m *model) deliver(d *modelDeployment, limit int) {
	list, done, failed := m.scanUntil(m.needsDelivery(d), m.now), 0, 0
	for first := true; len(list) > 0 && done < limit && failed < 10*limit; first = false {
		page := list[:min(limit-done, len(list))]
		list = list[len(page):]
		for _, due := range page {
			run := due.run
			switch row := run.row; {
			case m.atBound(run):
				m.failAbandoned(d, run)
				if !first { // what the stage before found counts there
					done++
				}
			case row == nil || row.status == lane.OutboxPublished:
				m.request(run, 0, true)
				done++
				if !m.tried(run) {
					failed++
				}
			case !row.dueAt().After(m.now): // its wakeup was never sent: that is sent, and nothing is appended
				m.publish(run)
				if m.tried(run) {
					done++
				} else {
					failed++
				}
			}
		}
		list = slices.DeleteFunc(list, func(due modelDue) bool { return m.aside[due.run.Queue] })
	}
}

// tried reports whether the transport took the wakeup that a stage has just sent. Where it is out, the rest of the tick does without the
// run's queue.
func (m *model) tried(run *modelRun) bool {
	if m.fault == modeOut || m.fault == modeBroken {
		m.aside[run.Queue] = true
	}
	return m.fault == modeSound || m.fault == modeUnmarked
}

// dueAt is when a publisher may take the row.
func (row *modelRow) dueAt() time.Time {
	if row.status == lane.OutboxClaimed {
		return row.claimUntil
	}
	return row.available
}

// sendAhead: a long wait that ends within 70 s gets a wakeup that arrives at its end.
func (m *model) sendAhead(d *modelDeployment, limit int) {
	list := m.scanUntil(m.needsDelivery(d), m.now.Add(70*time.Second))
	found := 0
	for page := range 10 {
		from := page * limit
		for i := from; i < min(from+limit, len(list)); i++ {
			if run := list[i].run; run.Status != runlane.StatusRunning && list[i].at.After(m.now) {
				m.sends(run, list[i].at.Sub(m.now))
				found++
			}
		}
		if from+limit >= len(list) || found >= limit {
			return
		}
	}
}

// redeliver asks again for wakeups that were lost, and for those of runs that wait for a slot of a queue which has no limit any more.
func (m *model) redeliver(d *modelDeployment, limit int) {
	for _, due := range m.scan(func(run *modelRun) (time.Time, bool) {
		if run.Status != runlane.StatusQueued || d.bound(run.Queue) > 0 || m.underway(run, modelShortPatience) {
			return time.Time{}, false
		}
		switch {
		case run.dead():
			return time.Time{}, false
		case !run.DispatchExpiresAt.IsZero():
			return run.DispatchExpiresAt, true
		case run.row == nil:
			return run.dueAt(), true
		default:
			return run.lostAt(), run.row.status == lane.OutboxPublished
		}
	}, limit) {
		m.request(due.run, 0, true)
		m.tried(due.run)
	}
}

// dispatch reserves slots for those that wait, as many as are free, and for those whose worker is gone: these have one.
func (m *model) dispatch(d *modelDeployment, limit int) {
	found := m.scanUntil(func(run *modelRun) (time.Time, bool) {
		return run.Lease.ExpiresAt, run.Status == runlane.StatusRunning && d.bound(run.Queue) > 0 && !m.underway(run, modelShortPatience)
	}, m.now)
	for _, key := range concurrencyKeys {
		room := d.limit - m.occupied(slotQueue, key)
		for _, due := range m.waiting(slotQueue, key) {
			if room > 0 && !m.underway(due.run, modelShortPatience) {
				found = append(found, due)
				room--
			}
		}
	}
	sortDue(found)
	for _, due := range found[:min(limit, len(found))] {
		run := due.run
		switch {
		case m.atBound(run):
			m.failAbandoned(d, run)
		case run.reserved(m.now): // a process that freed a slot in this tick was faster
		case run.occupies(m.now) || m.occupied(run.Queue, run.ConcurrencyKey) < d.limit:
			m.reserve(run)
			m.tried(run)
		case run.Status == runlane.StatusRunning: // it began without a slot; now it waits for one
			m.request(run, 0, false)
		}
	}
}

// flush publishes rows that no publisher has sent. It looks behind those that fail, like deliver.
func (m *model) flush(limit int) {
	for done, failed := 0, 0; done < limit && failed < 10*limit; {
		rows := m.scan(func(run *modelRun) (time.Time, bool) {
			row := run.row
			if row == nil || row.status == lane.OutboxPublished || run.dead() || m.aside[run.Queue] {
				return time.Time{}, false
			}
			return row.dueAt(), !m.underway(run, modelShortPatience) && !m.reservationOver(run)
		}, limit-done)
		if len(rows) == 0 {
			return
		}
		for _, due := range rows {
			m.publish(due.run)
			if m.tried(due.run) {
				done++
			} else {
				failed++
			}
		}
	}
}

// reservationOver: nothing is sent for a run that must find a slot again first.
func (m *model) reservationOver(run *modelRun) bool {
	return !run.DispatchExpiresAt.IsZero() && !run.reserved(m.now)
}

// contended: several runs of one partition could be served by this tick, side by side, and who is faster is anybody's guess. Such a
// tick takes one row at a time.
func (m *model) contended(d *modelDeployment) bool {
	if d.limit == 0 {
		return false
	}
	for _, key := range concurrencyKeys {
		expired := 0
		for _, run := range m.runs {
			if run.Queue == slotQueue && run.ConcurrencyKey == key && run.owned() && !m.now.Before(run.Lease.ExpiresAt) {
				expired++
			}
		}
		if expired > 0 && expired+len(m.waiting(slotQueue, key)) > 1 {
			return true
		}
	}
	return false
}
