package waits

// nodeRun is the run of a node as of a round.
func (w *world) nodeRun(s *state, n, round uint8) uint8 {
	if round == 1 && w.remade(s, n) {
		return w.runOf(n, 1)
	}
	return n
}

// remade reports a node that a retry makes again: it goes after one that is remade, or it did not succeed and the ends
// that stay are what it wants.
func (w *world) remade(s *state, n uint8) bool {
	for set := w.nodes[n].after; set != 0; set &= set - 1 {
		if w.remade(s, first(set)) {
			return true
		}
	}
	unmet := w.holds(unmetStays) && !w.met(s, n, 0)
	return s.runs[n].status != succeeded && !unmet
}

// met reports that the ends of what a node goes after are what it wants. What was never made has not begun.
func (w *world) met(s *state, n, round uint8) bool {
	met := w.nodes[n].when != ifFailed
	for set := w.nodes[n].after; set != 0; set &= set - 1 {
		switch x := &s.runs[w.nodeRun(s, first(set), round)]; {
		case x.status == succeeded:
		case w.nodes[n].when == ifSucceeded:
			return false
		case x.begun || !w.holds(undoOfBegun) || w.holds(undoOwed) && w.owes(s, n, round):
			met = true
		}
	}
	return met
}

// owes reports a node that undoes and was remade because what it undoes had begun and it did not succeed: it has to
// still, whether or not what it undoes begins again.
func (w *world) owes(s *state, n, round uint8) bool {
	if round == 0 || w.nodes[n].when != ifFailed || s.runs[n].status == succeeded {
		return false
	}
	for set := w.nodes[n].after; set != 0; set &= set - 1 {
		if x := &s.runs[first(set)]; x.begun && x.status != succeeded {
			return true
		}
	}
	return false
}

// undoes reports that run x, before node n in a round, has left something to undo.
func (w *world) undoes(s *state, n, round uint8, x *run) bool {
	return x.status != succeeded && (x.begun || w.owes(s, n, round))
}

// beginFlow lets what concerns the flow as a whole begin.
func (w *world) beginFlow(s *state, free int, emit emitter) {
	f := s.flow
	if !f.begun {
		t := *s
		t.flow = flow{begun: true, tend: w.holds(flowMarker)}
		t.procs[free] = process{kind: starter}
		emit(label{"a flow is started", 0, outside}, t, "")
		return
	}
	if f.finished && w.holds(retryEnded) {
		w.beginRetry(s, free, emit)
		return
	}
	once := func(bit int, text string, change func(t *state) string) {
		if s.did&(1<<bit) == 0 {
			t := *s
			t.did |= 1 << bit
			emit(label{text, 0, outside}, t, change(&t))
		}
	}
	for n := range w.flowActs('x') {
		if s.did&(1<<(12+n)) == 0 {
			once(12+n, "the flow is cancelled", func(t *state) string { return w.closeFlow(t, free, false) })
			break
		}
	}
	if w.flowActs('z') > 0 && f.closed > 0 && f.tend {
		once(14, "its cancellation is repeated", func(t *state) string { return w.closeFlow(t, free, true) })
	}
	w.beginRetry(s, free, emit)
	t := *s
	switch {
	case !f.tend:
	case f.closed > 0:
		t.procs[free] = sweeper(&t.flow)
		emit(label{"tick: reads the closed flow", 0, byTick}, t, "")
	default:
		t.procs[free] = process{kind: closer, phase: phTend, n: f.round}
		if _, some := w.missing(&t, f.round); some {
			t.procs[free].val = 1
		}
		emit(label{"tick: reads the flow whose hour is over", 0, byTime}, t, "")
	}
}

// beginRetry lets the retry of a flow begin in which something did not succeed.
func (w *world) beginRetry(s *state, free int, emit emitter) {
	if w.flowActs('y') == 0 || s.flow.round > 0 || w.holds(retryEnded) && !s.flow.finished {
		return
	}
	some := false
	for n := range uint8(len(w.nodes)) { // at most maxRuns
		if s.runs[n].status == absent {
			return
		}
		some = some || w.remade(s, n)
	}
	if some {
		t := *s
		t.flow = flow{begun: true, tend: w.holds(flowMarker), round: 1}
		w.headChanged(&t)
		t.procs[free] = process{kind: starter, n: 1}
		emit(label{"the failed part of the flow is retried", 0, outside}, t, "")
	}
}

// sweeper is who asks the nodes of a closed flow, as it was read.
func sweeper(f *flow) process {
	return process{kind: closer, phase: phChildren, n: f.round, closed: f.closed, head: true}
}

// headChanged is what every write of the head does to those who read it before.
func (w *world) headChanged(t *state) {
	for k := range t.procs {
		t.procs[k].head = false
	}
}

// closeFlow is a cancellation of the flow. One on its way is not another one.
func (w *world) closeFlow(t *state, k int, repeated bool) (bad string) {
	if f := &t.flow; f.closed == 0 || !f.tend || !w.holds(sameCancel) {
		if repeated {
			bad = "a repeated cancellation counts as a second one"
		}
		f.closed, f.tend = min(f.closed+1, 2), w.holds(closeTends)
		w.headChanged(t)
	}
	t.procs[k] = sweeper(&t.flow)
	return bad
}

// create makes a flow's next node.
func (w *world) create(s *state, k uint8, emit emitter) {
	t := *s
	p, f := &t.procs[k], &t.flow
	i, some := w.missing(&t, p.n)
	text := "starter makes a node"
	switch {
	case !some:
		text = "starter completes the flow"
		w.complete(f, p.n)
		w.headChanged(&t)
		*p = process{}
	case (f.closed > 0 || f.round != p.n) && w.holds(flowOpen):
		text = "starter finds the flow closed"
		*p = process{}
	default:
		w.makeNode(&t, i)
	}
	emit(label{text, i, byWork}, t, "")
}

// complete records that every run of the round is there.
func (w *world) complete(f *flow, round uint8) {
	if f.closed == 0 && f.tend && f.round == round {
		f.tend, f.complete = false, true
	}
}

// missing is the next node of this round that is not made.
func (w *world) missing(s *state, round uint8) (i uint8, ok bool) {
	for k := range w.nodes {
		if w.holds(sinksFirst) {
			k = len(w.nodes) - 1 - k
		}
		n := uint8(k) // at most maxRuns
		i = w.runOf(n, round)
		if s.runs[i].status == absent && (round == 0 || w.remade(s, n)) {
			return i, true
		}
	}
	return 0, false
}

// makeNode is the creation of a node: it waits for those that it goes after, apart from those that a retry leaves
// alone.
func (w *world) makeNode(s *state, i uint8) {
	n, round, _ := w.place(i)
	r := run{status: queued}
	for set := w.nodes[n].after; set != 0; set &= set - 1 {
		if round == 0 || w.remade(s, first(set)) {
			r = run{status: scheduled, inForce: true, stored: wait{kinds: forEnds}, truly: wait{kinds: forEnds}}
		}
	}
	s.runs[i] = r
}

// spared reports a node that its flow's cancellation leaves to its condition.
func (w *world) spared(n, closed uint8) bool {
	return w.nodes[n].when != ifSucceeded && w.holds(undoSpared) && (closed < 2 || !w.holds(secondCancel))
}

// sweep is the next request of who closes a flow: it asks the nodes, judges those that are spared, as what was never
// made tells no one, and records that this is done.
func (w *world) sweep(s *state, k uint8, emit emitter) {
	t := *s
	p, f := &t.procs[k], &t.flow
	text, bad := "closer: every node was asked", ""
	switch p.phase {
	case phTend:
		text, bad = w.tendIncomplete(&t, p)
	case phChildren:
		p.phase = phLook
		for ; int(p.at) < len(w.nodes); p.at++ {
			i := w.nodeRun(&t, p.at, p.n)
			if st := t.runs[i].status; st.active() && st != cancelling && !w.spared(p.at, p.closed) {
				w.ask(&t, i)
				p.at, p.phase, text = p.at+1, phChildren, "closer asks a node"
				break
			}
		}
		if p.phase == phLook {
			if p.at = 0; !w.holds(sweepJudges) {
				p.phase = phFinish
			}
		}
	case phEnd:
		text = "closer: that is recorded"
		if f.closed == p.closed && f.round == p.n && !f.finished {
			f.tend = false
			w.headChanged(&t)
		}
		*p = process{}
	default:
		w.judge(s, k, emit)
		return
	}
	emit(label{text, 0, byWork}, t, bad)
}

// tendIncomplete is what a tick does to a flow whose starter is an hour old, by what it read of the runs.
func (w *world) tendIncomplete(t *state, p *process) (text, bad string) {
	f := &t.flow
	switch {
	case p.val == 0:
		w.complete(f, p.n)
		w.headChanged(t)
		*p = process{}
		return "tick: the flow is complete", ""
	case f.closed > 0, f.finished, f.round != p.n, !f.tend && w.holds(closesIncomplete):
		*p = process{}
		return "tick: the flow has changed", ""
	case f.complete:
		bad = "a tick cancels a flow that is complete"
	}
	f.closed, f.tend = 1, w.holds(closeTends)
	w.headChanged(t)
	*p = sweeper(f)
	return "tick: the incomplete flow is closed", bad
}
