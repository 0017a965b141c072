package main

// deliver is what a wakeup or a poll decides after it has read run and slots. None means ignored.
func (w *world) deliver(s *state, r int8, poll bool, skew int8, out []process) []process {
	run := &s.runs[r]
	base := process{
		kind:     bridge,
		run:      r,
		op:       opClaim,
		at:       leaseFor,
		limit:    w.limit(s),
		sequence: true,
		marker:   true,
		slots:    true,
		poll:     poll,
	}
	base.keep = w.keeps(run, &base)
	switch run.status {
	case running:
		switch {
		case run.lease > skew:
			return out
		case w.holds(abandonAlways) && run.abandoned+1 >= w.maxAbandoned:
			base.op = opFailAbandoned
			return append(out, base)
		case run.slot != 0:
			return append(out, base) // its own since the last claim
		}
	case scheduled, waiting:
		if run.runAt > skew {
			return out
		}
	case queued:
	default:
		return out
	}
	if run.status == queued && run.slot != 0 && run.reserved > skew && (base.limit != 0 || w.holds(slotByRun)) {
		base.slot, base.inTime = run.slot, true
		base.slots = s.slots[run.slot-1].holder == r+1 // else a process whose clock is ahead has taken it
		return append(out, base)
	}
	if base.limit == 0 {
		return append(out, base)
	}
	if !poll && !w.holds(claimTakesSlot) {
		return out
	}
	var room [maxSlots]choice
	choices := w.claimSlot(s, r, base.limit, skew, room[:0])
	for _, c := range choices {
		p := base
		p.slot, p.own, p.inTime, p.choosing = c.slot, c.own, c.live, c.later
		out = append(out, p)
	}
	if len(choices) == 0 && !poll && run.status != running && run.kind != slotless {
		base.op, base.at = opMove+slotless, 0
		out = append(out, base)
	}
	return out
}

// keeps reports a claim that leaves the marker as it is.
func (w *world) keeps(run *item, p *process) bool {
	if !w.holds(claimMoves) {
		return true
	}
	return !p.poll && (run.kind == deliverable || run.kind == timed) && run.at <= p.at
}

// chooseAgain is what follows a slot that another process was faster to take: another one, or the wait for one. Four
// tries are made, so the wait may come although there is room.
func (w *world) chooseAgain(s *state, p process, out []process) []process {
	if p.limit == 0 {
		return w.deliver(s, p.run, p.poll, 0, out) // the reservation is lost: judged anew
	}
	var room [maxSlots]choice
	choices := w.claimSlot(s, p.run, p.limit, 0, room[:0])
	for _, c := range choices {
		again := p
		again.slot, again.own, again.slots, again.inTime, again.choosing = c.slot, c.own, true, p.op == opClaim &&
			c.live, c.later
		out = append(out, again)
	}
	return w.without(s, p, out)
}
