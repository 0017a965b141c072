package main

import (
	"fmt"

	"github.com/runlane/runlane-go/spec/explore"
)

// longestRecovery is within how many units of time every run has ended once faults end.
const longestRecovery = 40

// Settles asks whether everything ends. From s all processes stop, all wakeups under way are lost, then faults end.
// With nothing but the tick once a unit of time, and workers that serve wakeups, each run must end or wait for a person
// in x, and no slot may stay held. Index, relay and messages are thus never needed, only faster. settled remembers
// beginnings that do.
func (w *world) Settles(s state, settled *explore.Space[state]) (bad string, log []string, took int) {
	q := *w
	q.skew, q.refusals, q.latency = false, false, 0
	s.processes = [maxProcesses]process{}
	s.wakeups = [maxRuns]uint8{}
	if _, isNew := settled.Add(&s); !isNew {
		return "", nil, 0
	}
	log = append(log, explore.Line("--- processes stop, wakeups are lost, faults end ---", s.String()))
	for now := range longestRecovery {
		for before := (state{}); before != s; {
			before = s
			for r := range int8(q.runs) {
				q.serve(&s, r, &log)
			}
		}
		if !q.open(&s) {
			for n, v := range s.slots {
				if v.holder != 0 && v.until == held {
					return fmt.Sprintf("slot %d leaks: held for ever by a run that is not running", n), log, now
				}
			}
			return "", nil, now
		}
		s = q.later(s)
		log = append(log, explore.Line("time", s.String()))
	}
	if len(log) > 14 {
		log = append(log[:13:13], "and so on")
	}
	return "a run is lost: nothing ever looks at it again", log, longestRecovery
}

// open reports a run that neither ended nor waits for a person.
func (w *world) open(s *state) bool {
	for i := range w.runs {
		run := &s.runs[i]
		waits := (run.status == queued || run.status == scheduled) && run.row == dead && run.kind == deadLetter
		if run.status != absent && run.status != terminal && !waits {
			return true
		}
	}
	return false
}

// serve delivers a run's wakeup and lets each stage of a tick look at it, each to its end.
func (w *world) serve(s *state, r int8, log *[]string) {
	var room [16]process
	if s.wakeups[r]&1 != 0 {
		decided := w.deliver(s, r, false, 0, room[:0])
		run := &s.runs[r]
		if early := (run.status == waiting || run.status == scheduled) && run.runAt > 0; !early || !w.native {
			s.wakeups[r] &^= 1
		}
		if len(decided) > 0 {
			w.complete(s, decided[0], log)
		}
	}
	for stage := finalizing; stage < stageCount; stage++ {
		if !w.due(&s.runs[r], stage, w.limit(s)) {
			continue
		}
		if decided := w.scan(s, r, stage, 0, room[:0]); len(decided) > 0 {
			w.complete(s, decided[0], log)
		}
	}
}

// complete lets a decision be committed, and its handler end or its row be sent.
func (w *world) complete(s *state, p process, log *[]string) {
	if p.choosing { // at worst it sees none
		var room [1]process
		missed := w.without(s, p, room[:0])
		if len(missed) == 0 {
			return
		}
		p = missed[0]
	}
	s.processes[0] = p
	if _, result := w.commit(s, 0); result != committed {
		s.processes[0] = process{}
		return
	}
	*log = append(*log, explore.Line(fmt.Sprintf("run %d: %s, %s", p.run, processName(p.kind), opName(p)), s.String()))
	for s.processes[0].kind != idle {
		if s.processes[0].kind == worker {
			w.finish(s, p.run, 0)
			s.processes[0] = process{}
			break
		}
		var next state
		w.publish(s, 0, func(_ label, t state, _ string) { next = t })
		*s = next
	}
}
