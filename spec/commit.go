package main

// How a commit ends.
const (
	committed int8 = iota
	lost           // its conditions failed for good
	lostSlot       // only a slot is not as it was read
)

const beyondLimit = "a slot was added beyond the limit carried"

// commit performs what a process has decided. bad is a violation that only the step shows.
func (w *world) commit(s *state, self int) (bad string, result int8) {
	p := &s.processes[self]
	run := &s.runs[p.run]
	switch {
	case p.op > opMove:
		return "", w.move(s, self)
	case p.op == opFlush:
		return "", w.flush(s, self)
	case p.op == opGiveBack:
		return "", w.giveBack(s, self)
	case !p.sequence && w.holds(sequence):
		return "", lost
	case run.status == terminal:
		return "a finished run changes", committed
	case p.slot != 0 && !p.slots && w.holds(slotUnchanged):
		return "", lostSlot
	case p.inTime && w.holds(claimInTime) && s.slots[p.slot-1].until <= 0:
		return "", lost
	}
	limit := p.limit
	if w.mixed {
		limit = w.limits[0]
	}
	before, adds := live(s), w.adds(s, p)
	w.write(s, self)
	if after := live(s); adds && after > limit && after > before {
		return beyondLimit, committed
	}
	return "", committed
}

// adds reports a commit that takes more capacity than its run has.
func (w *world) adds(s *state, p *process) bool {
	if p.slot == 0 || p.inTime {
		return false
	}
	v := s.slots[p.slot-1]
	return v.holder != p.run+1 || !v.taken(0)
}

// write is a commit whose conditions hold.
func (w *world) write(s *state, self int) {
	p := &s.processes[self]
	r := p.run
	switch p.op {
	case opClaim:
		w.claim(s, self)
	case opReserve:
		w.request(s, self)
		w.take(s, r, self, p, p.at)
		s.runs[r].reserved = p.at
		w.publishCommitted(s, self, r)
	case opRequest, opRedeliver:
		w.request(s, self)
		w.free(s, r, self)
		w.publishCommitted(s, self, r)
	case opRecover:
		w.request(s, self)
		w.free(s, r, self)
		s.setRow(r, self, noRow, 0)
		s.mark(r, self, slotless, 0)
		*p = process{}
	default: // opFailAbandoned, opFinalize
		w.finish(s, r, self)
		*p = process{}
	}
}

func (w *world) move(s *state, self int) int8 {
	p := &s.processes[self]
	if s.runs[p.run].status == terminal || w.holds(moveCondition) && (!p.sequence || !p.marker) {
		return lost
	}
	s.mark(p.run, self, p.op-opMove, p.at)
	*p = process{}
	return committed
}

// flush claims the row. A run that moved on has superseded it: a publisher that claims it even so sends a wakeup that
// changes nothing.
func (w *world) flush(s *state, self int) int8 {
	p := &s.processes[self]
	switch {
	case !p.sequence:
		*p = process{kind: publisher, run: p.run}
	case !p.held:
		return lost // another claimed or marked it
	default:
		s.setRow(p.run, self, claimed, claimFor)
		*p = process{kind: publisher, run: p.run, held: true, sequence: true, marker: p.marker}
	}
	return committed
}

// request appends run.delivery_requested, its row claimed from the start, and moves the marker to q.
func (w *world) request(s *state, self int) {
	p := &s.processes[self]
	r := p.run
	run := &s.runs[r]
	if run.status == running {
		run.abandoned++
	}
	if run.status == queued && run.slot != 0 && p.op == opReserve && w.doubling && run.rounds < mostRounds {
		run.rounds++
	}
	s.disown(r, self)
	run.status, run.runAt, run.reserved = queued, 0, 0
	s.setRow(r, self, claimed, claimFor)
	s.moved(r, self)
	s.mark(r, self, deliverable, 0)
}

// publishCommitted goes on as the publisher of the row that was just made, or, where a world is not about publishers,
// sends at once.
func (w *world) publishCommitted(s *state, self int, r int8) {
	p := process{kind: publisher, run: r, held: true, sequence: true, marker: true}
	if w.folded {
		s.runs[r].row, s.runs[r].rowAt = published, w.redeliverIn()
		w.send(s, r)
		p = process{}
	}
	if self >= 0 {
		s.processes[self] = p
	}
}

// claim commits run.lease_claimed and run.started.
func (w *world) claim(s *state, self int) {
	p := &s.processes[self]
	r := p.run
	run := &s.runs[r]
	keep := p.keep
	if w.holds(commitMarker) {
		keep = w.keeps(run, p) // repeated on the item as it is
	}
	wasRunning := run.status == running
	if wasRunning {
		run.abandoned++
	}
	s.disown(r, self)
	if w.holds(supersede) {
		s.setRow(r, self, noRow, 0)
	}
	switch until := held; {
	case p.slot != 0:
		if !w.holds(claimHolds) {
			until = p.at
		}
		w.take(s, r, self, p, until)
	case !wasRunning && w.holds(slotByRun):
		w.free(s, r, self)
	}
	run.status, run.runAt, run.reserved, run.rounds, run.lease = running, 0, 0, 0, p.at
	s.moved(r, self)
	if !keep {
		s.mark(r, self, leased, run.lease)
	}
	*p = process{kind: worker, run: r, held: true}
}

// finish commits a terminal event.
func (w *world) finish(s *state, r int8, self int) {
	run := &s.runs[r]
	if w.holds(outcomeFrees) {
		w.free(s, r, self)
	}
	s.disown(r, self)
	if w.holds(supersede) || run.status != queued {
		s.setRow(r, self, noRow, 0)
	}
	s.moved(r, self)
	if w.holds(terminalRemoves) {
		s.mark(r, self, noMarker, 0)
	}
	*run = item{status: terminal, kind: run.kind, at: run.at, row: run.row, abandoned: run.abandoned}
}

// wait commits run.retry_scheduled; a release is the same here.
func (w *world) wait(s *state, r int8, self int) {
	run := &s.runs[r]
	if w.holds(outcomeFrees) {
		w.free(s, r, self)
	}
	s.disown(r, self)
	s.setRow(r, self, noRow, 0)
	run.status, run.reserved, run.runAt = waiting, 0, waitFor
	run.failures++
	s.moved(r, self)
	s.mark(r, self, timed, waitFor)
	if w.native {
		w.send(s, r)
	}
	s.processes[self] = process{}
}
