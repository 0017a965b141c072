package waits

// create makes a flow's next node.
func (w *world) create(s *state, k uint8, emit emitter) {
	t := *s
	if t.flow.closed > 0 && w.holds(flowOpen) {
		t.procs[k] = process{}
		emit(label{"starter finds the flow closed", 0, byWork}, t, "")
		return
	}
	i, ok := w.missing(&t)
	if ok {
		w.makeNode(&t, i)
	}
	if _, more := w.missing(&t); !more {
		t.flow.complete = true
		t.procs[k] = process{}
	}
	emit(label{"starter makes a node", i, byWork}, t, "")
}

// missing is the next node of this round that is not made.
func (w *world) missing(s *state) (i uint8, ok bool) {
	for k := range w.nodes {
		if w.holds(sinksFirst) {
			k = len(w.nodes) - 1 - k
		}
		n := uint8(k) //nolint:gosec // at most maxRuns
		i = w.runOf(n, s.flow.round)
		if s.runs[i].status == absent && (s.flow.round == 0 || w.remade(s, n)) {
			return i, true
		}
	}
	return 0, false
}

// makeNode is the creation of a node: it waits for those that it goes after, apart from those that a retry leaves
// alone.
func (w *world) makeNode(s *state, i uint8) {
	n, round, _ := w.place(i)
	r := run{
		status:  scheduled,
		inForce: true,
		stored:  wait{kinds: forEnds},
		truly:   wait{kinds: forEnds},
	}
	for set := w.nodes[n].after; set != 0 && round == 1; set &= set - 1 {
		if !w.remade(s, first(set)) {
			r.have++
		}
	}
	if r.have == w.endsWanted(i) {
		r = run{status: queued, have: r.have}
	}
	s.runs[i] = r
}

// retriable reports a flow that has ended, with something that did not succeed.
func (w *world) retriable(s *state) bool {
	if s.flow.round != 0 || !s.flow.begun {
		return false
	}
	some := false
	for n := range w.nodes {
		r := &s.runs[n]
		if w.holds(retryEnded) && (!r.status.ended() || r.untold || s.flow.swept < s.flow.closed) {
			return false
		}
		some = some || r.status == failed || r.status == cancelled
	}
	return some
}

// head is what the tick and people do to a flow as a whole.
func (w *world) head(s *state, emit emitter) {
	f := s.flow
	if !f.begun {
		return
	}
	for n := range w.flowActs('x') {
		if bit := 12 + n; s.did&(1<<bit) == 0 && f.closed < 2 {
			t := *s
			t.did |= 1 << bit
			t.flow.closed++
			emit(label{"the flow is cancelled", 0, outside}, t, "")
			break
		}
	}
	if !f.complete && f.closed == 0 && w.holds(flowMarker) {
		t := *s
		t.flow.closed = 1
		emit(label{"tick: the incomplete flow is closed", 0, byTime}, t, "")
	}
	if f.swept < f.closed {
		w.sweep(s, emit)
	}
}

// sweep asks the nodes of a closed flow, one at a time, and makes those that are missing, cancelled.
func (w *world) sweep(s *state, emit emitter) {
	if i, ok := w.missing(s); ok && !s.flow.complete && w.holds(missingMade) {
		t := *s
		w.makeNode(&t, i)
		w.end(&t, i, cancelled)
		emit(label{"tick: a missing node is made, cancelled", i, byTick}, t, "")
		return
	}
	for n := range w.nodes {
		i := w.runOf(uint8(n), s.flow.round) //nolint:gosec // at most maxRuns
		if st := s.runs[i].status; w.asked(s, n) && st.active() && st != cancelling {
			t := *s
			w.ask(&t, i)
			emit(label{"tick: a node of the closed flow is asked", i, byTick}, t, "")
			return
		}
	}
	t := *s
	t.flow.swept = t.flow.closed
	emit(label{"tick: every node of the closed flow was asked", 0, byTick}, t, "")
}

// asked reports a node that the flow's cancellation is for.
func (w *world) asked(s *state, n int) bool {
	return w.nodes[n].when == ifSucceeded || !w.holds(undoSpared) || s.flow.closed == 2 && w.holds(secondCancel)
}

// tell is the next request of a teller.
func (w *world) tell(s *state, k uint8, emit emitter) {
	t := *s
	p := &t.procs[k]
	i := p.run
	c := &t.runs[i]
	text, bad := "teller reads", ""
	switch p.phase {
	case phRead:
		w.readAddressees(&t, p)
		if p.phase = phCommit; c.status == cancelled && c.knowsIt {
			p.phase = phChildren
		}
	case phChildren:
		text = "teller asks the children"
		for ; p.n < maxRuns && w.parent[p.n] != i+1; p.n++ {
		}
		if p.n == maxRuns {
			p.n, p.phase = 0, phCommit
			break
		}
		w.ask(&t, p.n)
		p.n++
	default:
		text = "teller commits"
		switch {
		case !c.untold && w.holds(toldOnce) || c.status == pruned:
			*p = process{}
		case w.conflicts(&t, p):
			text = "teller: conflict"
			p.phase = phRead
		default:
			var told bool
			if told, bad = w.told(&t, p); told {
				c.untold = false
			}
			t.procs[k] = process{}
		}
	}
	emit(label{text, i, byWork}, t, bad)
}

// readAddressees is what a teller reads: for whom its end is the last, and who of them waits.
func (w *world) readAddressees(t *state, p *process) {
	p.last, p.wakes, p.peers, p.counts = 0, 0, true, true
	for set := w.addressees(t, p.run); set != 0; set &= set - 1 {
		y := first(set)
		if w.isLast(t, p.run, y) {
			p.last |= 1 << y
		}
		if w.waitsFor(t, p.run, y) {
			p.wakes |= 1 << y
		}
	}
}

// isLast reports that y needs no other end than that of i.
func (w *world) isLast(t *state, i, y uint8) bool {
	r := &t.runs[y]
	if w.parent[i] == y+1 {
		return r.ended+1 == w.children(y)
	}
	early := !w.holds(judgedLast) && t.runs[i].status != succeeded
	return r.have+1 == w.endsWanted(y) || early
}

// waitsFor reports that y waits, among other things perhaps, for ends like that of i.
func (w *world) waitsFor(t *state, i, y uint8) bool {
	r := &t.runs[y]
	what := forEnds
	if w.parent[i] == y+1 {
		what = forChildren
	}
	return r.inForce && r.status.waiting() && r.stored.kinds&(what|forAnything) != 0
}

// conflicts reports that the transaction of a teller does not go through.
func (w *world) conflicts(t *state, p *process) bool {
	if !p.counts && w.holds(tellCount) {
		return true
	}
	for set := p.last; set != 0; set &= set - 1 {
		y := first(set)
		if t.runs[y].status.ended() {
			continue
		}
		wakes := p.wakes&(1<<y) != 0
		if wakes && !p.peers || !wakes && w.waitsFor(t, p.run, y) && w.holds(lastChecks) {
			return true
		}
	}
	return false
}

// told raises the counts of the addressees, and resumes or cancels those for whom this is the last end.
func (w *world) told(t *state, p *process) (done bool, bad string) {
	c := t.runs[p.run]
	for set := w.addressees(t, p.run); set != 0 && bad == ""; set &= set - 1 {
		y := first(set)
		r := &t.runs[y]
		if r.status.ended() {
			if !w.holds(tellGone) {
				return false, ""
			}
			continue
		}
		by := forEnds
		if w.parent[p.run] == y+1 {
			by = forChildren
			r.ended++
		} else if r.status != absent {
			r.have++
		}
		if c.status != succeeded {
			r.worst |= sawBad
			if c.begun || !w.holds(undoOfBegun) {
				r.worst |= sawUndo
			}
		}
		w.moved(t, y, func(q *process) { q.counts = false })
		if p.last&p.wakes&(1<<y) != 0 {
			bad = w.goOn(t, y, by)
		}
	}
	return true, bad
}

// goOn is what the last end does to who waits for it.
func (w *world) goOn(t *state, y, by uint8) (bad string) {
	r := &t.runs[y]
	if n, _, ok := w.place(y); ok {
		met := r.worst&sawBad == 0
		switch w.nodes[n].when {
		case ifSucceeded:
		case ifFailed:
			met = r.worst&sawUndo != 0
		case always:
			met = true
		}
		if !met {
			if w.holds(unmetCancelled) {
				w.end(t, y, cancelled)
			}
			return ""
		}
	}
	return w.resume(t, y, by)
}
