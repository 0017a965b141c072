package main

import "time"

// tickRun is one invocation of the tick: rounds of stages, each with its share of the time that is left, as core's Tick
// and functions' Tick have it. There are no cancellations, calls and schedules here, so those stages only look. Where
// rows of a full queue are due, the stage which reserves slots only moves them to where runs wait for one.
type tickRun struct {
	world *world
	end   time.Duration
	done  float64 // in this round
	more  bool

	scanned bool
	due     []*cohort // what one scan finds for two stages
	moreDue bool
}

// most is how far most stages look, sendsAhead how far the one that sends wakeups ahead, and flushes the one that
// publishes.
var (
	most       = reach{enough: defaultTickLimit}
	sendsAhead = reach{ahead: aheadTime, enough: aheadPages * defaultTickLimit}
	flushes    = reach{enough: publishBatch}
)

// ticks begins a tick a minute.
func (w *world) ticks() {
	w.after(time.Minute, func() {
		w.ticks()
		reserve := max(minTickReserve, tickTimeout/tickReserveShare)
		t := &tickRun{world: w, end: w.now + tickTimeout - reserve}
		t.round()
	})
}

func (t *tickRun) round() {
	t.done, t.more, t.scanned, t.due = 0, false, false, nil
	left := 0
	for _, share := range stageShares {
		left += share
	}
	stages := []func(until time.Duration, then func()){
		t.finalize, t.abandoned, t.tell, t.deliver, t.redeliver, t.idle, t.dispatch, t.flush,
	}
	var next func(i int)
	next = func(i int) {
		w := t.world
		if i == len(stages) {
			if t.more && t.done > 0 && t.end-w.now >= minTickRound {
				t.round()
			}
			return
		}
		until := w.now + (t.end-w.now)*time.Duration(stageShares[i])/time.Duration(left)
		left -= stageShares[i]
		stages[i](until, func() { next(i + 1) })
	}
	next(0)
}

func (t *tickRun) idle(_ time.Duration, then func()) { then() }

// dispatch reads the slots of the full queue once, and moves its due rows out of the way of the next tick.
func (t *tickRun) dispatch(until time.Duration, then func()) {
	if s := t.world.slots; s != nil {
		s.reserveFree(until, func(n float64) {
			t.done += n
			t.more = t.more || n == defaultTickLimit
			then()
		})
		return
	}
	if t.world.load.Full == 0 {
		then()
		return
	}
	t.scan(dispatching, most, until, func(_ []*cohort, more bool) {
		t.more = t.more || more
		then()
	})
}

func (t *tickRun) finalize(until time.Duration, then func()) {
	t.scan(finalizing, most, until, func([]*cohort, bool) { then() })
}

func (t *tickRun) tell(until time.Duration, then func()) {
	t.scan(telling, most, until, func([]*cohort, bool) { then() })
}

// scan is shared by the two stages that deal with what needs a delivery.
func (t *tickRun) scanDue(until time.Duration, then func()) {
	if t.scanned {
		then()
		return
	}
	t.scanned = true
	t.scan(delivering, most, until, func(found []*cohort, more bool) {
		t.due, t.moreDue = found, more
		then()
	})
}

// abandoned fails the runs at the bound and leaves the others to the next stage.
func (t *tickRun) abandoned(until time.Duration, then func()) {
	t.scanDue(until, func() {
		var others, bound []*cohort
		for _, c := range t.due {
			if c.status == running && c.abandoned() >= maxAbandoned {
				bound = append(bound, c)
			} else {
				others = append(others, c)
			}
		}
		t.due = others
		t.each(bound, until, func(c *cohort, then func()) {
			t.done += c.weight
			t.world.giveUp(c, then)
		}, then)
	})
}

func (t *tickRun) deliver(until time.Duration, then func()) {
	t.scanDue(until, func() {
		before := t.done
		t.each(t.due, until, t.ask, func() {
			t.more = t.more || t.moreDue && t.done > before
			t.sendAhead(until, then)
		})
	})
}

// sendAhead looks for long waits that end soon. All waits here are short and have their wakeup, so that it only looks.
func (t *tickRun) sendAhead(until time.Duration, then func()) {
	t.scan(delivering, sendsAhead, until, func([]*cohort, bool) { then() })
}

// ask requests a delivery and publishes it.
func (t *tickRun) ask(c *cohort, then func()) {
	w := t.world
	if c.status == queued && c.sent == 0 { // created for later, its row was never published
		w.publishRow(c, then)
		t.done += c.weight
		return
	}
	now := w.now
	w.send(step{
		request: &recoverRun, cohort: c, move: &move{to: deliverable, at: now}, sequence: c.sequence,
		committed: func() {
			w.outcome.recovered(now, c)
			w.outcome.asked += c.weight
			if c.status == running {
				c.firstSent = 0
			}
			c.status, c.dueAt = queued, now
		},
		then: func(r result) {
			if r != carried {
				then()
				return
			}
			t.done += c.weight
			w.publish(c, nil)
			then()
		},
	})
}

// redeliver asks again for wakeups that no worker followed, unless so many wait that they are late rather than lost.
func (t *tickRun) redeliver(until time.Duration, then func()) {
	w := t.world
	t.scan(redelivering, most, until, func(found []*cohort, more bool) {
		var missing []*cohort
		for _, c := range found {
			since := redeliveryAt(c.firstSent, c.sent)
			if w.queue.visible <= backlogDepth || w.now-since > maxBacklogWait {
				missing = append(missing, c)
				w.outcome.again += c.weight
			}
		}
		before := t.done
		t.each(missing, until, t.ask, func() {
			t.more = t.more || more && t.done > before
			then()
		})
	})
}

// flush publishes rows that no publisher has sent.
func (t *tickRun) flush(until time.Duration, then func()) {
	t.scan(publishing, flushes, until, func(found []*cohort, more bool) {
		before := t.done
		t.each(found, until, func(c *cohort, then func()) {
			t.done += c.weight
			t.world.publishRow(c, then)
		}, func() {
			t.more = t.more || more && t.done > before
			then()
		})
	})
}

// each does something for cohorts, one after another; of one's runs the runtime has several in hand at once.
func (t *tickRun) each(list []*cohort, until time.Duration, do func(c *cohort, then func()), then func()) {
	if len(list) == 0 || t.world.now >= until {
		t.more = t.more || len(list) > 0
		then()
		return
	}
	c := list[0]
	spread := time.Duration((c.weight - 1) / tickParallel * float64(transactionTime+writeTime))
	t.world.after(spread, func() {
		do(c, func() { t.each(list[1:], until, do, then) })
	})
}
