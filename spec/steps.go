package main

// emitter takes one step: what it is, where it leads, and a violation that only the step shows.
type emitter func(l label, s state, bad string)

// vacant is a place for one more process; -1: all are at work.
func (w *world) vacant(s *state) int {
	for i := range w.processes {
		if s.processes[i].kind == idle {
			return i
		}
	}
	return -1
}

func (w *world) skews() []int8 {
	if w.skew {
		return []int8{0, 1}
	}
	return []int8{0}
}

// Steps lists everything that can happen next.
func (w *world) Steps(s *state, emit func(l label, s state, bad string)) {
	work := w.vacant(s) != 0 // urgent worlds let no time pass while there is something to do
	for i := range w.processes {
		work = work || s.processes[i].kind != idle
	}
	for r := range int8(w.runs) {
		if s.runs[r].status == absent {
			work = true
			w.trigger(s, r, emit)
			break // runs are created in order
		}
	}
	w.deploy(s, emit)
	for r := range int8(w.runs) {
		if s.runs[r].status == absent {
			continue
		}
		w.operate(s, r, emit)
		work = w.wake(s, r, emit) || work
		work = w.ticks(s, r, emit) || work
	}
	for i := range w.processes {
		w.proceed(s, i, emit)
	}
	if w.latency == 0 || !work {
		if t := w.later(*s); t != *s {
			emit(label{"time", 0}, t, "")
		}
	}
}

// trigger creates a run. It reads slots and commits in one step.
func (w *world) trigger(s *state, r int8, emit emitter) {
	created := func(row, kind, at int8) state {
		t := *s
		t.runs[r] = item{status: queued, row: row, kind: kind, at: at}
		if row == claimed {
			t.runs[r].rowAt = claimFor
		}
		return t
	}
	eager := func(t state, text, bad string) {
		if w.stops {
			emit(label{text + "; publisher stops", r}, t, bad)
		}
		if i := w.vacant(&t); i >= 0 {
			w.publishCommitted(&t, i, r)
			emit(label{text, r}, t, bad)
		}
	}
	limit := w.limit(s)
	if w.deferred {
		t := created(pending, timed, waitFor)
		t.runs[r].status, t.runs[r].runAt, t.runs[r].rowAt = scheduled, waitFor, waitFor
		emit(label{"trigger scheduled", r}, t, "")
	}
	if limit == 0 {
		eager(created(claimed, deliverable, 0), "trigger", "")
		if w.deferred {
			emit(label{"trigger deferred", r}, created(pending, unpublished, 0), "")
		}
		return
	}
	emit(label{"trigger without a slot", r}, created(noRow, slotless, 0), "")
	if w.latency > 0 {
		return
	}
	var room [maxSlots]choice
	for _, c := range w.chooseSlot(s, r, limit, 0, room[:0]) {
		t := created(claimed, deliverable, 0)
		t.put(c.slot-1, -1, slot{r + 1, w.reservation})
		t.runs[r].slot, t.runs[r].reserved = c.slot, w.reservation
		bad := ""
		if live(&t) > limit {
			bad = beyondLimit
		}
		eager(t, "trigger with a slot", bad)
	}
}

// deploy puts the next limit into force, where the world says so also while commits with the old one are under way.
func (w *world) deploy(s *state, emit emitter) {
	if int(s.deployed)+1 >= len(w.limits) {
		return
	}
	for _, p := range s.processes {
		if !w.mixed && (p.kind == bridge || p.kind == tick) {
			return
		}
	}
	t := *s
	t.deployed++
	emit(label{"deploy another limit", 0}, t, "")
}

// operate is what people do: cancel, and requeue what was given up.
func (w *world) operate(s *state, r int8, emit emitter) {
	run := &s.runs[r]
	if w.cancel && run.status != terminal && run.status != cancelRequested {
		t := *s
		if run.status == running {
			t.runs[r].status = cancelRequested
			t.moved(r, -1)
			emit(label{"cancellation requested", r}, t, "")
		} else {
			w.finish(&t, r, -1)
			emit(label{"cancelled", r}, t, "")
		}
	}
	if run.row == dead && run.kind == deadLetter && w.refusals && (run.status == queued || run.runAt <= 0) {
		t := *s
		t.moved(r, -1)
		w.free(&t, r, -1)
		t.runs[r].status, t.runs[r].runAt, t.runs[r].reserved = queued, 0, 0
		if w.limit(s) != 0 {
			t.setRow(r, -1, noRow, 0)
			t.mark(r, -1, slotless, 0)
		} else {
			t.setRow(r, -1, claimed, claimFor)
			t.mark(r, -1, deliverable, 0)
		}
		emit(label{"dead letter requeued", r}, t, "")
	}
}

// wake serves a wakeup, or a worker that polls. It reports whether there was a wakeup.
func (w *world) wake(s *state, r int8, emit emitter) bool {
	var room [16]process
	run := &s.runs[r]
	if w.polled {
		for _, p := range w.deliver(s, r, true, 0, room[:0]) {
			t := *s
			if i := w.vacant(&t); i >= 0 {
				t.processes[i] = p
				emit(label{"poll: " + opName(p), r}, t, "")
			}
		}
	}
	if s.wakeups[r]&1 == 0 {
		return false
	}
	gone := *s
	gone.wakeups[r] &^= 1
	if w.loss {
		emit(label{"wakeup lost", r}, gone, "")
	}
	if i := w.vacant(s); i >= 0 && w.strangers && run.status == queued && run.slot != 0 && run.reserved > 0 {
		t := *s
		t.processes[i] = process{
			kind: bridge, run: r, op: opGiveBack, slot: run.slot,
			slots: s.slots[run.slot-1] == slot{r + 1, run.reserved},
		}
		emit(label{"wakeup, which stays: " + opName(t.processes[i]), r}, t, "")
	}
	early := (run.status == waiting || run.status == scheduled) && run.runAt > 0
	for _, skew := range w.skews() {
		decided := w.deliver(s, r, false, skew, room[:0])
		if len(decided) == 0 && (!early || !w.native) { // an early one is sent again with what is left of its delay
			emit(label{"wakeup ignored", r}, gone, "")
		}
		for _, p := range decided {
			i := w.vacant(s)
			if i < 0 {
				break
			}
			t := gone
			t.processes[i] = p
			emit(label{"wakeup: " + opName(p), r}, t, "")
			if w.duplicates {
				t.wakeups[r] |= 1
				emit(label{"wakeup, which stays: " + opName(p), r}, t, "")
			}
		}
	}
	return true
}

// ticks lets each stage of the tick look at a run whose marker is due for it. A row that all its stages pass over, and
// leave where it is, would be read for ever.
func (w *world) ticks(s *state, r int8, emit emitter) (acts bool) {
	var room [8]process
	run, limit := &s.runs[r], w.limit(s)
	looked, passed := false, true
	for stage := finalizing; stage < stageCount; stage++ {
		if !w.due(run, stage, limit) {
			passed = passed && !scanned(run, stage, limit)
			continue
		}
		looked = true
		for _, skew := range w.skews() {
			for _, p := range w.scan(s, r, stage, skew, room[:0]) {
				acts = true
				t := *s
				if i := w.vacant(&t); i >= 0 {
					t.processes[i] = p
					emit(label{"tick, " + stageName(stage) + ": " + opName(p), r}, t, "")
				}
			}
		}
	}
	if looked && passed && !acts && run.kind != slotless {
		emit(label{"looks", r}, *s, "an inspection changes nothing and leaves the marker due")
	}
	return acts
}

// proceed lets a process do its next request, or stop for ever.
func (w *world) proceed(s *state, i int, emit emitter) {
	p := s.processes[i]
	if p.kind == idle {
		return
	}
	stopped := *s
	stopped.processes[i] = process{}
	if w.latency == 0 && (w.stops || p.kind == bridge || p.kind == tick) {
		emit(label{processName(p.kind) + " stops", p.run}, stopped, "")
	}
	switch p.kind {
	case worker:
		w.work(s, i, emit)
		return
	case publisher:
		w.publish(s, i, emit)
		return
	}
	if run := &s.runs[p.run]; p.op == opRedeliver && !p.sequence && run.status == queued {
		t := *s
		again := &t.processes[i]
		again.sequence, again.marker = true, true
		emit(label{"tick reads the run, which moved on since the scan", p.run}, t, "")
	}
	if p.choosing {
		var room [8]process
		numbers := w.window(s, p, room[:0])
		for _, q := range numbers {
			t := *s
			t.processes[i] = q
			emit(label{"reads some numbers, then: " + opName(q), p.run}, t, "")
		}
		if len(numbers) == 0 {
			emit(label{"reads some numbers: none is free", p.run}, stopped, "")
		}
		return
	}
	t := *s
	bad, result := w.commit(&t, i)
	switch result {
	case committed:
		emit(label{"commit: " + opName(p), p.run}, t, bad)
	case lostSlot:
		var room [8]process
		again := w.chooseAgain(&stopped, p, room[:0])
		for _, a := range again {
			t := *s
			t.processes[i] = a
			emit(label{"slot lost, then: " + opName(a), p.run}, t, "")
		}
		if len(again) == 0 {
			emit(label{"slot lost", p.run}, stopped, "")
		}
	default:
		emit(label{"conditions fail: " + opName(p), p.run}, stopped, "")
	}
}

// work is what a handler's owner does: renew the lease, and commit an outcome under its token.
func (w *world) work(s *state, i int, emit emitter) {
	p := s.processes[i]
	r := p.run
	run := &s.runs[r]
	t := *s
	if !p.held {
		t.processes[i] = process{}
		if w.holds(fence) || run.status != running {
			emit(label{"late owner finds its token gone", r}, t, "")
			return
		}
		w.finish(&t, r, i)
		emit(label{"late owner commits an outcome", r}, t, "an outcome was committed by a worker that is not the owner")
		return
	}
	if w.heartbeat && run.lease < leaseFor {
		t.runs[r].lease = leaseFor
		t.moved(r, i)
		emit(label{"heartbeat", r}, t, "")
		t = *s
	}
	w.finish(&t, r, i)
	t.processes[i] = process{}
	emit(label{"outcome: the end", r}, t, "")
	if w.retry && run.status == running && run.failures < w.maxFailures {
		t = *s
		w.wait(&t, r, i)
		emit(label{"outcome: retry", r}, t, "")
	}
}
