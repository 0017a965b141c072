package waits

import "strings"

// Steps lists everything that can happen next.
func (w *world) Steps(s *state, emit emitter) {
	free, workers := -1, uint8(0)
	for k := range w.procs {
		p := &s.procs[k]
		if p.kind == idle {
			if free < 0 {
				free = k
			}
			continue
		}
		if p.kind == worker {
			workers++
		}
		if s.deaths < w.deaths {
			t := *s
			t.procs[k] = process{}
			t.deaths++
			emit(label{kindName(p.kind) + " dies", p.run, outside}, t, "")
		}
		w.proceed(s, uint8(k), emit) // at most maxProcs
	}
	for i := range uint8(maxRuns) {
		w.times(s, i, emit)
		if free >= 0 {
			w.come(s, i, uint8(free), workers, emit) // at most maxProcs
		}
	}
	if free >= 0 {
		w.begin(s, free, emit)
		if len(w.nodes) > 0 {
			w.beginFlow(s, free, emit)
		}
	}
}

func (w *world) proceed(s *state, k uint8, emit emitter) {
	switch s.procs[k].kind {
	case idle:
	case worker:
		w.work(s, k, emit)
	case signaller:
		w.signal(s, k, emit)
	case operator, canceller, pruner:
		w.operate(s, k, emit)
	case teller:
		w.tell(s, k, emit)
	case starter:
		w.create(s, k, emit)
	case closer:
		w.sweep(s, k, emit)
	}
}

// come lets a worker come to a run, or a teller to its end.
func (w *world) come(s *state, i, k, workers uint8, emit emitter) {
	r := &s.runs[i]
	claimable := r.status == queued || r.status.waiting() && r.due
	if w.isBounded(i) {
		claimable = r.status == queued && r.slot
	}
	if claimable && workers < w.workers {
		t := *s
		of := w.parent[i]
		t.procs[k] = process{
			kind:     worker,
			phase:    phClaim,
			run:      i,
			current:  true,
			listened: r.listened,
			life:     r.life,
			stopped:  of > 0 && s.runs[of-1].status == cancelled,
		}
		emit(label{"a worker reads it", i, byTick}, t, "")
	}
	if r.untold {
		t := *s
		t.procs[k] = process{kind: teller, run: i}
		emit(label{"a teller comes", i, byTick}, t, "")
	}
}

// begin lets what comes from outside begin, each once.
func (w *world) begin(s *state, free int, emit emitter) {
	start := func(bit int, p process, run uint8, text string) {
		if s.did&(1<<bit) == 0 {
			t := *s
			t.did |= 1 << bit
			p.run = run
			t.procs[free] = p
			emit(label{text, run, outside}, t, "")
		}
	}
	for n, sig := range w.signals {
		if w.toNode && !s.flow.begun {
			continue
		}
		start(n, process{kind: signaller, val: sig.inbox<<4 | sig.id, n: s.flow.round}, 0, "a signal is sent")
	}
	for n, act := range w.acts {
		bit := 4 + n
		switch act {
		case 'o':
			start(bit, process{kind: operator}, 0, "an operator resumes it")
		case 'c':
			if len(w.nodes) == 0 || s.runs[0].status != absent {
				start(bit, process{kind: canceller}, 0, "a canceller comes")
			}
		case 'p':
			for i := range uint8(maxRuns) {
				if s.runs[i].status.terminal() {
					start(bit, process{kind: pruner}, i, "its pruning begins")
				}
			}
		case 'r':
			if r := s.runs[0]; r.status == pruned && s.did&(1<<bit) == 0 {
				t := *s
				t.did |= 1 << bit
				t.runs[0] = run{status: queued, life: 1, kept: r.kept, keptOf: r.keptOf, inbox: r.inbox}
				emit(label{"its id is used again", 0, outside}, t, "")
			}
		}
	}
}

// times are the moments of a run, and what the tick does about them.
func (w *world) times(s *state, i uint8, emit emitter) {
	r := &s.runs[i]
	do := func(text string, by order, change func(t *state, r *run)) {
		t := *s
		change(&t, &t.runs[i])
		emit(label{text, i, by}, t, "")
	}
	if r.status.owned() && !r.over {
		do("its lease ends", byTime, func(_ *state, r *run) { r.over = true })
	}
	if r.timed && !r.late && r.status.active() {
		do("the moment of its sleep or limit passes", byTime, func(_ *state, r *run) { r.late = true })
	}
	timed := r.status == retrying || r.inForce && r.stored.kinds&forTime != 0 && r.late
	if r.status.waiting() && !r.due && timed {
		do("its moment comes", byTime, func(_ *state, r *run) { r.due = true })
	}
	if !w.isBounded(i) && r.status.waiting() && r.due {
		do("tick: delivery requested", byTick, func(t *state, r *run) { w.commit(t, i); r.status = queued })
	}
	if w.isBounded(i) && (r.status.waiting() && r.due || r.status == queued && !r.slot) && !w.slotTaken(s) {
		do("tick: slot reserved", byTick, func(t *state, r *run) { w.commit(t, i); r.status, r.slot = queued, true })
	}
	if r.status == running && r.over {
		do("tick: recovered", byTick, func(t *state, r *run) {
			w.commit(t, i)
			r.status, r.owner, r.over = queued, 0, false
		})
	}
	if r.status == cancelling && r.over {
		do("tick: cancellation finished", byTick, func(t *state, _ *run) { w.end(t, i, cancelled) })
	}
}

func (w *world) slotTaken(s *state) bool {
	for i := range s.runs {
		if s.runs[i].slot {
			return true
		}
	}
	return false
}

// operate is the next request of an operator, a canceller or a pruner.
func (w *world) operate(s *state, k uint8, emit emitter) {
	t := *s
	p := &t.procs[k]
	i := p.run
	r := &t.runs[i]
	if p.phase == phRead {
		p.current, p.phase = true, phCommit
		emit(label{kindName(p.kind) + " reads", i, byWork}, t, "")
		return
	}
	bad, text := "", kindName(p.kind)+" commits"
	switch {
	case p.kind == operator:
		if p.current && r.status.waiting() && !r.due {
			bad = w.resume(&t, i, 0)
		}
		*p = process{}
	case p.kind == canceller && !p.current:
		p.phase = phRead
	case p.kind == canceller:
		w.ask(&t, i)
		*p = process{}
	default:
		bad = w.prune(&t, i, p)
	}
	emit(label{text, i, byWork}, t, bad)
}

// prune removes first what stands beside a run, then the run.
func (w *world) prune(t *state, i uint8, p *process) (bad string) {
	r, of := &t.runs[i], w.parent[i]
	switch {
	case !r.status.terminal(),
		r.untold && w.holds(pruneTold),
		of > 0 && t.runs[of-1].status.active() && w.holds(pruneChild):
		*p = process{}
	case p.n == 0:
		r.inbox, r.counted, r.kept, r.keptOf = [inboxes]uint8{}, 0, [2]uint8{}, [2]uint8{}
		p.n = 1
	default:
		if r.untold {
			bad = "a run is pruned whose end was not told"
		}
		*r = run{status: pruned, kept: r.kept, keptOf: r.keptOf, inbox: r.inbox}
		*p = process{}
	}
	return bad
}

// signal is a signaller's next request. A repetition after a lost answer is another one with the same id.
func (w *world) signal(s *state, k uint8, emit emitter) {
	t := *s
	p := &t.procs[k]
	if p.phase == phRead && w.toNode {
		p.run = 0
		if w.holds(latestRun) {
			p.run = w.latest(s, 0)
		}
	}
	i := p.run
	r := &t.runs[i]
	box, id := p.val>>4, p.val&15
	put := func() {
		r.inbox[box] |= 1 << id
		r.counted++
		if r.inForce && r.stored.all && w.holds(namesLowered) {
			r.stored.names &^= 1 << box
		}
	}
	text, bad := "signaller commits", ""
	switch {
	case p.phase == phRead && !r.status.active() && w.holds(signalActive):
		text = "a signal is refused"
		if _, round, ok := w.place(i); ok && w.toNode && round < p.n && s.flow.complete && w.latest(s, 0) != i {
			bad = "a signal to a node is refused although the node was retried before"
		}
		*p = process{}
	case p.phase == phRead:
		text = "signaller reads"
		p.counted, p.current, p.phase = r.counted, true, phCommit
		p.satisfied = r.status.waiting() && r.inForce && w.endsWith(r.stored, box)
	case p.phase == phWake:
		text = "signaller wakes"
		if p.current {
			bad = w.resume(&t, i, forSignal)
		}
		*p = process{}
	case !r.status.active() && w.holds(signalActive), r.inbox[box]&(1<<id) != 0 && w.holds(signalOnce):
		*p = process{}
	case r.counted != p.counted && w.holds(signalCount),
		p.satisfied && !p.current && w.holds(resumeSequence),
		!p.satisfied && r.inForce && r.stored.kinds&(forSignal|forAnything) != 0 && !p.current && w.holds(notWaiting):
		text = "signaller: conflict"
		p.phase = phRead
	case p.satisfied && w.holds(oneTransaction):
		put()
		bad = w.resume(&t, i, forSignal)
		*p = process{}
	case p.satisfied:
		put()
		p.phase = phWake
	default:
		put()
		*p = process{}
	}
	emit(label{text, i, byWork}, t, bad)
}

// endsWith reports that a signal to this inbox is all that is missing.
func (w *world) endsWith(v wait, box uint8) bool {
	switch {
	case v.kinds&forAnything != 0:
		return true
	case v.kinds&forSignal == 0:
		return false
	case !w.holds(inboxOfWait):
		return true
	case v.all:
		return v.names == 1<<box
	}
	return v.names&(1<<box) != 0
}

func kindName(k kind) string {
	return [...]string{
		"idle", "worker", "signaller", "operator", "canceller", "teller", "starter", "closer", "pruner",
	}[k]
}

// flowActs reports acts that are about the flow as a whole.
func (w *world) flowActs(act rune) int { return strings.Count(w.acts, string(act)) }
