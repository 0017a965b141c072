package main

// mostRounds bounds the doubling of reservations.
const mostRounds = 2

// taken reports a slot that is occupied at an instant. skew is how far the reader's clock is ahead.
func (v slot) taken(skew int8) bool { return v.holder != 0 && (v.until == held || v.until > skew) }

// occupied counts what holds capacity.
func (w *world) occupied(s *state, skew int8) (n int8) {
	for _, v := range s.slots {
		if v.taken(skew) || v.holder != 0 && !w.holds(expiredIsFree) {
			n++
		}
	}
	return n
}

// choice is a number that a run may take, and the own one that it gives up for it: number + 1 each.
type choice struct {
	slot, own int8
	live      bool // its own live reservation
	later     bool // the number is chosen by another read, see window
}

// claimSlot is chooseSlot for a process that does not read the partition whole where the limit is large.
func (w *world) claimSlot(s *state, r, limit, skew int8, out []choice) []choice {
	choices := w.chooseSlot(s, r, limit, skew, out)
	if !w.windows || !w.clear(s, limit, skew) {
		return choices
	}
	own := int8(0)
	for n, v := range s.slots {
		switch {
		case v.holder != r+1:
		case v.taken(skew):
			return choices // its own
		default:
			own = int8(n) + 1
		}
	}
	return append(out, choice{own: own, later: true})
}

// chooseSlot is dynamostore's chooseSlot: the run's own slot while it is held, or else each of the free ones.
func (w *world) chooseSlot(s *state, r, limit, skew int8, out []choice) []choice {
	own := int8(0)
	for n, v := range s.slots {
		if v.holder == r+1 {
			own = int8(n) + 1
		}
	}
	if own != 0 && w.holds(reuseOwn) {
		v := s.slots[own-1]
		if v.taken(skew) || !w.holds(reuseJudged) {
			return append(out, choice{slot: own, live: v.until != held && v.until > skew})
		}
	}
	room := limit - w.occupied(s, skew)
	for n := int8(0); n < limit && room > 0; n++ {
		if s.slots[n].taken(skew) {
			continue
		}
		c := choice{slot: n + 1}
		if own != c.slot {
			c.own = own
		}
		out = append(out, c)
		if w.holds(lowestFree) {
			room--
		}
	}
	return out
}

// clear reports that no number at or above the limit is occupied.
func (w *world) clear(s *state, limit, skew int8) bool {
	for n := limit; n < maxSlots; n++ {
		if s.slots[n].taken(skew) && w.holds(aboveFirst) {
			return false
		}
	}
	return true
}

// window is the second read of a process that found nothing at or above the limit: any unused number below it, which no
// process had to see beside the others. It may show none although there is one, because a window is not the partition.
func (w *world) window(s *state, p process, out []process) []process {
	for n := range p.limit {
		if s.slots[n].taken(0) {
			continue
		}
		q := p
		q.choosing, q.slots, q.slot = false, true, n+1
		if q.own == q.slot {
			q.own = 0
		}
		out = append(out, q)
	}
	return w.without(s, p, out)
}

// without is what follows for a process that gets no slot: the run waits for one.
func (w *world) without(s *state, p process, out []process) []process {
	run := &s.runs[p.run]
	p.slot, p.own, p.slots, p.inTime, p.choosing, p.at = 0, 0, true, false, false, 0
	switch {
	case run.status != running && run.kind != slotless:
		p.op = opMove + slotless
		out = append(out, p)
	case run.status == running && p.op == opReserve && w.holds(recoverToQueued):
		p.op = opRecover
		out = append(out, p)
	}
	return out
}

// free gives up the slot that the run names, if it still holds it.
func (w *world) free(s *state, r int8, self int) {
	run := &s.runs[r]
	if run.slot == 0 {
		return
	}
	if n := run.slot - 1; s.slots[n].holder == r+1 || !w.holds(freesOwnOnly) {
		s.put(n, self, slot{})
	}
	run.slot = 0
}

// giveBack frees a reserved slot and leaves the run as it is.
func (w *world) giveBack(s *state, self int) int8 {
	p := s.processes[self]
	if !p.slots && w.holds(returnsReserved) {
		return lost
	}
	s.put(p.slot-1, self, slot{})
	s.processes[self] = process{}
	return committed
}

// take puts the chosen slot into the run's hands.
func (w *world) take(s *state, r int8, self int, p *process, until int8) {
	if run := &s.runs[r]; run.slot != 0 && run.slot != p.slot {
		w.free(s, r, self)
	}
	if p.own != 0 && s.slots[p.own-1].holder == r+1 {
		s.put(p.own-1, self, slot{})
	}
	s.put(p.slot-1, self, slot{r + 1, until})
	s.runs[r].slot = p.slot
}

// reservationTime is how long the run's next reservation is: twice as long as one that just ended unclaimed, within a
// bound.
func (w *world) reservationTime(run *item) int8 {
	if !w.doubling {
		return w.reservation
	}
	rounds := run.rounds
	if run.status == queued && run.slot != 0 {
		rounds++
	}
	return w.reservation << uint(min(rounds, mostRounds))
}

// live counts, by real time, what capacity is: running runs with a slot, and reservations that are not over.
func live(s *state) (n int8) {
	for i := range s.runs {
		run := &s.runs[i]
		if run.slot == 0 {
			continue
		}
		v := s.slots[run.slot-1]
		if run.status == running || run.status == cancelRequested ||
			v.holder == int8(i)+1 && v.until != held && v.until > 0 {
			n++
		}
	}
	return n
}
