package main

// send puts a wakeup into the queue.
func (w *world) send(s *state, r int8) { s.wakeups[r] |= 1 << uint(w.latency) }

// publish lists the next steps of a publisher: send, mark the row, and move the marker by what was known before the
// mark.
func (w *world) publish(s *state, self int, emit emitter) {
	p := s.processes[self]
	r := p.run
	t := *s
	next := &t.processes[self]
	switch p.op {
	case pubSend:
		w.send(&t, r)
		next.op = pubMarkPublished
		emit(label{"send", r}, t, "")
		if w.refusals {
			t = *s
			next.op = pubMarkFailed
			emit(label{"send refused", r}, t, "")
			next.op = pubMarkDead
			emit(label{"send refused for good", r}, t, "")
		}
	case pubMarkPublished:
		w.markRow(&t, self, published, w.redeliverIn(), deliverable, 0)
		emit(label{"mark published", r}, t, "")
	case pubMarkFailed:
		w.markRow(&t, self, failed, backoff, unpublished, backoff)
		emit(label{"mark failed", r}, t, "")
	case pubMarkDead:
		w.markRow(&t, self, dead, 0, deadLetter, 0)
		emit(label{"mark dead-lettered", r}, t, "")
	default:
		kind := p.op - pubMove
		if (p.sequence && p.marker || !w.holds(moveAfterMark)) && s.runs[r].status != terminal {
			t.mark(r, self, kind, p.at)
		}
		*next = process{}
		emit(label{"move after the mark to " + kindName(kind), r}, t, "")
	}
}

// markRow writes the outcome of the send, if the claim on the row stands, and goes on to the move that belongs to it. A
// published row moves the marker only from o.
func (w *world) markRow(s *state, self int, row, rowAt, kind, at int8) {
	p := &s.processes[self]
	run := &s.runs[p.run]
	stands := p.held
	if stands {
		s.setRow(p.run, self, row, rowAt)
	}
	if !stands && w.holds(markHeldRow) || row == published && run.kind != unpublished {
		*p = process{}
		return
	}
	p.op, p.at, p.held = pubMove+kind, at, false
}
