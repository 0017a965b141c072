package main

// Canon brings a state into the form in which it is compared: a process that can only notice that it lost is idle,
// flags that no longer matter are cleared, and processes and runs, which are interchangeable, are sorted.
func (w *world) Canon(s *state) {
	w.tidy(s)
	for a := range int8(w.runs) {
		for b := a + 1; b < int8(w.runs); b++ {
			t := *s
			swap(&t, a, b)
			w.sortProcesses(&t)
			if less(&t, s) {
				*s = t
			}
		}
	}
}

// tidy is Canon but for the runs, which keep their places.
func (w *world) tidy(s *state) {
	for i := range s.processes {
		p := &s.processes[i]
		switch p.kind {
		case bridge, tick:
			w.canonReader(s, p)
		case worker:
			if !p.held && w.holds(fence) {
				*p = process{}
			}
		case publisher:
			w.canonPublisher(p)
		}
	}
	w.sortProcesses(s)
}

func (w *world) canonReader(s *state, p *process) {
	if w.holds(commitMarker) {
		p.keep = false // decided again at the commit
	}
	if p.slot == 0 && p.own == 0 {
		p.slots = true
	}
	switch {
	case p.op == opFlush:
		p.held = p.held || !p.sequence
		if p.sequence && !p.held {
			*p = process{}
		}
		return
	case p.op == opGiveBack: // what it knows of the run no more matters
		*p = process{kind: p.kind, run: p.run, op: p.op, slot: p.slot, slots: p.slots}
		if !p.slots && w.holds(returnsReserved) {
			*p = process{}
		}
		return
	case p.op > opMove:
		if w.holds(moveCondition) && (!p.sequence || !p.marker) {
			*p = process{}
		}
	case p.op == opRedeliver && !p.sequence && s.runs[p.run].status == queued:
	case !p.sequence && w.holds(sequence):
		*p = process{}
	}
	if p.kind == idle {
		return
	}
	p.held = true
	if p.op < opMove && p.slot == 0 && !p.choosing && w.holds(commitMarker) {
		p.marker = true // it no more matters
	}
}

func (w *world) canonPublisher(p *process) {
	p.slots, p.slot, p.own = false, 0, 0
	if p.op > pubMove {
		if w.holds(moveAfterMark) && (!p.sequence || !p.marker) {
			*p = process{}
		}
		return
	}
	p.at = 0
	if p.held || !w.holds(markHeldRow) {
		return
	}
	p.sequence, p.marker = false, false
	if p.op != pubSend {
		*p = process{}
	}
}

func processKey(p *process) uint64 {
	k := uint64(p.kind)<<48 | uint64(p.run)<<44 | uint64(p.op)<<36 | uint64(uint8(p.at))<<28 | uint64(p.slot)<<24 |
		uint64(p.own)<<20 |
		uint64(p.limit)<<16
	for i, flag := range [...]bool{p.sequence, p.marker, p.slots, p.held, p.keep, p.poll, p.inTime, p.choosing} {
		if flag {
			k |= 1 << uint(i)
		}
	}
	return k
}

func (w *world) sortProcesses(s *state) {
	for i := 1; i < w.processes; i++ {
		for j := i; j > 0 && processKey(&s.processes[j]) < processKey(&s.processes[j-1]); j-- {
			s.processes[j], s.processes[j-1] = s.processes[j-1], s.processes[j]
		}
	}
}

func swap(s *state, a, b int8) {
	s.runs[a], s.runs[b] = s.runs[b], s.runs[a]
	s.wakeups[a], s.wakeups[b] = s.wakeups[b], s.wakeups[a]
	other := func(r int8) int8 {
		switch r {
		case a:
			return b
		case b:
			return a
		default:
			return r
		}
	}
	for i := range s.slots {
		if s.slots[i].holder != 0 {
			s.slots[i].holder = other(s.slots[i].holder-1) + 1
		}
	}
	for i := range s.processes {
		if s.processes[i].kind != idle {
			s.processes[i].run = other(s.processes[i].run)
		}
	}
}

func runKey(r *item) (k uint64) {
	for _, v := range [...]int8{r.status, r.kind, r.row, r.at, r.rowAt, r.lease, r.reserved, r.slot, r.runAt} {
		k = k<<5 | uint64(uint8(v)&31)
	}
	return k<<9 | uint64(r.abandoned)<<6 | uint64(r.failures)<<3 | uint64(r.rounds)
}

// less merges most symmetric states; those that it does not merely cost memory.
func less(a, b *state) bool {
	for i := range a.runs {
		if x, y := runKey(&a.runs[i]), runKey(&b.runs[i]); x != y {
			return x > y // active ones first, absent ones last
		}
	}
	for i := range a.wakeups {
		if a.wakeups[i] != b.wakeups[i] {
			return a.wakeups[i] < b.wakeups[i]
		}
	}
	for i := range a.slots {
		if a.slots[i] != b.slots[i] {
			return a.slots[i].holder < b.slots[i].holder
		}
	}
	for i := range a.processes {
		if x, y := processKey(&a.processes[i]), processKey(&b.processes[i]); x != y {
			return x < y
		}
	}
	return false
}
