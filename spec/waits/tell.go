package waits

// tell is the next request of a teller.
func (w *world) tell(s *state, k uint8, emit emitter) {
	t := *s
	p := &t.procs[k]
	i := p.run
	c := &t.runs[i]
	_, _, isNode := w.place(i)
	text, bad := "teller reads", ""
	switch {
	case p.phase == phRead && isNode:
		text = "teller reads the flow"
		w.readFlow(&t, p)
	case p.phase == phRead:
		w.readAddressees(&t, p)
		if p.phase = phCommit; c.status == cancelled && c.knowsIt {
			p.phase = phChildren
		}
	case p.phase == phChildren:
		text = "teller asks the children"
		for ; p.n < maxRuns && w.parent[p.n] != i+1; p.n++ {
		}
		if p.n == maxRuns {
			p.n, p.phase = 0, phCommit
			break
		}
		w.ask(&t, p.n)
		p.n++
	case p.phase != phCommit:
		w.judge(s, k, emit)
		return
	default:
		text, bad = w.unmark(&t, p)
	}
	emit(label{text, i, byWork}, t, bad)
}

// unmark removes the mark of the end, with what it tells a caller or a listener.
func (w *world) unmark(t *state, p *process) (text, bad string) {
	c := &t.runs[p.run]
	switch {
	case !c.untold && w.holds(toldOnce) || c.status == pruned:
		*p = process{}
	case w.conflicts(t, p):
		p.phase = phRead
		return "teller: conflict", ""
	default:
		var told bool
		if told, bad = w.told(t, p); told {
			c.untold = false
		}
		*p = process{}
	}
	return "teller commits", bad
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
	return w.parent[i] != y+1 || t.runs[y].ended+1 == w.children(y)
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
	if _, _, isNode := w.place(p.run); isNode {
		return false
	}
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

// told raises the counts of the addressees, and resumes those for whom this is the last end.
func (w *world) told(t *state, p *process) (done bool, bad string) {
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
		w.moved(t, y, func(q *process) { q.counts = false })
		if p.last&p.wakes&(1<<y) != 0 {
			bad = w.resume(t, y, by)
		}
	}
	return true, bad
}

// readFlow is what the teller of a node's end reads first. The end of an earlier round is told to no one.
func (w *world) readFlow(t *state, p *process) {
	n, _, _ := w.place(p.run)
	p.n, p.closed, p.head = t.flow.round, t.flow.closed, true
	p.at, p.over, p.phase = 0, true, phLook
	if w.nodeRun(t, n, p.n) != p.run {
		p.phase = phCommit
	}
	if !w.holds(markLast) {
		t.runs[p.run].untold = false
	}
}

// judge is the next request of who looks at nodes: those that go after the end that is told, or those that the flow's
// cancellation spares; then at the flow.
func (w *world) judge(s *state, k uint8, emit emitter) {
	t := *s
	p := &t.procs[k]
	text, bad := "looks at a node", ""
	switch p.phase {
	case phLook:
		if w.look(&t, p, false); p.phase == phJudge && !w.holds(lookExact) {
			u := *s
			w.look(&u, &u.procs[k], true)
			emit(label{"looks at a node, and sees too little", u.procs[k].run, byWork}, u, "")
		}
	case phJudge:
		text = "judges a node"
		bad = w.decide(&t, p)
	case phFinish:
		text = "looks at the flow"
		if p.phase = phHead; w.holds(finishedAll) && !w.allEnded(&t, p, 1<<len(w.nodes)-1, true) {
			p.past()
		}
	default:
		text = "records that the flow has finished"
		w.finish(&t, p)
	}
	emit(label{kindName(s.procs[k].kind) + " " + text, s.procs[k].run, byWork}, t, bad)
}

// past is what comes after the look at the flow.
func (p *process) past() {
	if p.phase = phEnd; p.kind == teller {
		p.phase = phCommit
	}
}

// look reads the next node and the ends before it: in one step, as ends become only more.
func (w *world) look(t *state, p *process, stale bool) {
	p.last, p.wakes, p.peers = 0, 0, true
	for ; int(p.at) < len(w.nodes); p.at++ {
		if p.kind == closer && w.spared(p.at, p.closed) {
			break
		}
		if of, _, _ := w.place(p.run); p.kind == teller && w.nodes[p.at].after&(1<<of) != 0 {
			break
		}
	}
	if int(p.at) == len(w.nodes) {
		if p.phase = phFinish; p.kind == teller && !p.over {
			p.past()
		}
		return
	}
	y := w.nodeRun(t, p.at, p.n)
	r := &t.runs[y]
	if r.status.waiting() && r.inForce && r.stored.kinds == forEnds && !stale &&
		w.allEnded(t, p, w.nodes[p.at].after, w.holds(judgedAll)) {
		p.last, p.phase = 1<<y, phJudge
		if w.met(t, p.at, p.n) {
			p.wakes = p.last
		}
		return
	}
	p.over = p.over && (r.status.ended() || r.status == absent && p.closed > 0)
	p.at++
}

// allEnded reports that all of some nodes have ended, or any of them. What a closed flow misses has.
func (w *world) allEnded(t *state, p *process, nodes uint8, all bool) bool {
	for ; nodes != 0; nodes &= nodes - 1 {
		st := t.runs[w.nodeRun(t, first(nodes), p.n)].status
		over := st.ended() || st == absent && p.closed > 0 && w.holds(missingEnded)
		if over != all {
			return over
		}
	}
	return all
}

// decide is what the ends before a node lead to, on the sequence of the node that was read.
func (w *world) decide(t *state, p *process) (bad string) {
	y := first(p.last)
	p.phase = phLook
	switch {
	case !p.peers && w.holds(judgeSequence):
		return ""
	case p.wakes != 0:
		bad = w.resume(t, y, forEnds)
	case w.holds(unmetCancelled) && t.runs[y].status.active():
		w.end(t, y, cancelled)
	}
	p.over = false
	p.at++
	return bad
}

// finish records that every run of the flow has ended, on the head that was read.
func (w *world) finish(t *state, p *process) {
	switch f := &t.flow; {
	case p.head || !w.holds(headVersion):
		f.finished, f.tend = true, false
		f.round, f.closed = p.n, p.closed
		w.headChanged(t)
	case !f.finished && f.round == p.n:
		p.head, p.closed = true, f.closed
		return
	}
	p.past()
}
