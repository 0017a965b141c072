package main

import "time"

// settle says the outcome of a message: deleted, or handed back to come again after a while.
type settle func(back bool, after time.Duration)

// trigger creates a cohort's runs and wakes a worker, as Runtime.Trigger does.
func (w *world) trigger(weight float64) {
	c := w.newCohort(weight)
	c.status, c.dueAt = queued, w.now+w.load.Delay
	w.outcome.offered += weight
	if w.slots != nil {
		w.slots.enter(c)
		return
	}
	m := move{to: deliverable, at: w.now}
	switch {
	case w.load.Delay > 0:
		m = move{to: waiting, at: c.dueAt}
	case w.load.Deferred:
		m.to = unpublished
	}
	w.send(step{request: &create, cohort: c, move: &m, committed: func() { w.made(c) }, then: func(r result) {
		switch {
		case r != carried:
			w.turnAway(c)
		case w.load.Delay > 0:
			w.after(sendTime, func() { w.queue.send(c, c.dueAt-w.now) })
		case !w.load.Deferred:
			w.publish(c, nil)
		}
	}})
}

// made counts what a creation made, and shows it to the relay.
func (w *world) made(c *cohort) {
	w.outcome.created += c.weight
	w.outcome.active += c.weight
	if w.load.Deferred {
		w.relay.notice(c)
	}
}

// turnAway tells a caller that its runs were not created.
func (w *world) turnAway(c *cohort) {
	w.outcome.turnedAway += c.weight
	w.triggerNext()
}

// triggerSpread is within which time after the end of a run another is triggered, where that is so.
const triggerSpread = 2 * time.Second

// triggerNext keeps up how many runs wait for a slot.
func (w *world) triggerNext() {
	if w.load.Waiting > 0 {
		w.after(time.Duration(w.uniform()*float64(triggerSpread)), func() { w.trigger(1) })
	}
}

// publish sends the wakeup of a commit and records that. A record that cannot be written leaves the row to the tick;
// the wakeup is on its way all the same.
func (w *world) publish(c *cohort, then func()) {
	w.after(sendTime, func() {
		w.queue.send(c, 0)
		if c.firstSent == 0 {
			c.firstSent = w.now
		}
		c.sent = w.now
		w.send(step{request: &acknowledge, cohort: c, then: func(result) {
			if then != nil {
				then()
			}
		}})
	})
}

// deliver executes a wakeup as Runtime.ExecuteDelivery does: read, claim, handler, outcome.
func (w *world) deliver(m message, deadline time.Duration, settled settle) {
	c := m.cohort
	handBack := func() { settled(true, handBackDelay(m.receives)) }
	w.send(step{request: &readRun, cohort: c, then: func(r result) {
		switch {
		case r != carried:
			handBack()
			return
		case c.status.terminal(), c.status == running && w.now < c.leaseEnd:
			w.outcome.ignored += c.weight
			settled(false, 0)
			return
		case w.now < c.dueAt:
			w.queue.send(c, c.dueAt-w.now)
			settled(false, 0)
			return
		}
		if c.status == running && c.abandoned() >= maxAbandoned {
			w.giveUp(c, func() { settled(false, 0) })
			return
		}
		w.claim(c, deadline, func(r result) {
			switch r {
			case carried:
				w.execute(c, deadline, settled)
			case lost: // it reads again and finds that another process was faster
				w.send(step{request: &readRun, cohort: c, then: func(result) {
					w.outcome.ignored += c.weight
					settled(false, 0)
				}})
			case refused:
				handBack()
			}
		})
	}})
}

func (w *world) claim(c *cohort, deadline time.Duration, then func(result)) {
	request := &claim
	if c.holds {
		request = &claimWithSlot
	}
	var m *move
	if c.marker != deliverable && c.marker != waiting {
		m = &move{to: leased, at: deadline + leaseAfterDeadline}
	}
	w.send(step{request: request, cohort: c, move: m, sequence: c.sequence, committed: func() {
		w.outcome.recovered(w.now, c)
		c.status, c.leaseEnd = running, deadline+leaseAfterDeadline
		c.attempts++
		c.firstSent = 0
		w.outcome.attempts += c.weight
	}, then: then})
}

// execute is the handler and its outcome.
func (w *world) execute(c *cohort, deadline time.Duration, settled settle) {
	if c.attempts == 1 {
		w.outcome.start(w.now, w.now-max(c.created, c.dueAt), c.weight)
	}
	if w.outcome.dies(w.now, w.load.Lost) {
		w.outcome.lost, w.outcome.lostAt = c, w.now
		settled(true, 6*bridgeTimeout) // its visibility ends
		return
	}
	fails := w.load.Failing != nil && w.load.Failing(w.now, c.attempts)
	w.after(jittered(w.load.Handler, w.uniform()), func() {
		w.finish(c, fails, deadline, outcomeBackoffBase, settled)
	})
}

// finish writes the outcome, for as long as the invocation lasts. Without one the lease ends, and a tick finds that.
func (w *world) finish(c *cohort, fails bool, deadline, backoff time.Duration, settled settle) {
	s := step{cohort: c, sequence: c.sequence}
	next := func() { settled(false, 0) }
	failures := c.failures
	if fails {
		failures++
	}
	switch {
	case fails && failures < w.load.Attempts:
		runAt := w.now + jittered(exponential(failures), w.uniform())
		s.request, s.move = &retry, &move{to: waiting, at: runAt}
		s.committed = func() { c.status, c.dueAt = retrying, runAt }
		next = func() {
			w.after(sendTime, func() {
				w.queue.send(c, c.dueAt-w.now)
				settled(false, 0)
			})
		}
	case fails:
		s.request, s.move, s.ends = &fail, &move{}, failed
		s.committed = func() { w.end(c, failed) }
	default:
		s.request, s.move, s.ends = &succeed, &move{}, succeeded
		if c.holds {
			s.request = &succeedWithSlot
			next = func() { w.handOver(c, func() { settled(false, 0) }) }
		}
		s.committed = func() { w.end(c, succeeded) }
	}
	committed := s.committed
	s.committed = func() {
		c.failures = failures
		committed()
	}
	s.then = func(r result) {
		switch {
		case r != refused:
			next()
		case w.now+backoff < deadline:
			w.after(backoff, func() { w.finish(c, fails, deadline, min(2*backoff, outcomeBackoffMax), settled) })
		default:
			w.outcome.outcomesLost += c.weight
			settled(true, 6*bridgeTimeout-bridgeTimeout)
		}
	}
	w.send(s)
}

// giveUp fails a run whose attempts were abandoned too often.
func (w *world) giveUp(c *cohort, then func()) {
	w.send(step{
		request: &abandon, cohort: c, move: &move{}, ends: failed, sequence: c.sequence,
		committed: func() { w.end(c, failed) }, then: func(result) { then() },
	})
}

func (w *world) end(c *cohort, s status) {
	c.status = s
	w.outcome.end(w.now, c, s)
	if c.holds {
		w.slots.free(c)
	}
	w.triggerNext()
}
