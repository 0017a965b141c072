package waits

import (
	"fmt"
	"math/bits"

	"github.com/runlane/runlane-go/spec/explore"
)

// Check is what holds in every state.
func (w *world) Check(s *state) string {
	slots := 0
	for i := range uint8(maxRuns) {
		if s.runs[i].slot {
			slots++
		}
		if bad := w.checkRun(s, i); bad != "" {
			return bad
		}
	}
	if slots > 1 {
		return "the limit is exceeded"
	}
	for n := range w.nodes {
		if bad := w.checkNode(s, n); bad != "" {
			return bad
		}
	}
	return ""
}

func (w *world) checkRun(s *state, i uint8) string {
	r := &s.runs[i]
	signals := 0
	for _, ids := range r.inbox {
		signals += bits.OnesCount8(ids)
	}
	of := w.parent[i]
	switch {
	case r.truly.kinds != 0 && r.status.waiting() && !r.due && w.satisfied(s, i, r.truly):
		return "a run sleeps through a wait that is satisfied"
	case r.status.active() && int(r.counted) != signals:
		return "a run counts other signals than stand beside it"
	case r.status == pruned && signals != 0:
		return "a signal stands beside a run that is pruned"
	case r.hasCall && r.status.active() && r.ended != w.toldOf(s, func(c uint8) bool { return w.parent[c] == i+1 }):
		return "a run counts other ended children than were told"
	case of > 0 && s.runs[of-1].status == cancelled && !s.runs[of-1].untold && r.status == running:
		return "a run goes on although its parent was cancelled and its children were asked"
	}
	return ""
}

// toldOf counts the runs of those that have ended and whose end was told.
func (w *world) toldOf(s *state, of func(uint8) bool) (told uint8) {
	for k := range uint8(maxRuns) {
		if x := &s.runs[k]; of(k) && x.status.ended() && !x.untold {
			told++
		}
	}
	return told
}

// goesAfter reports that run i of node n goes after run d.
func (w *world) goesAfter(s *state, n, i, d uint8) bool {
	of, round, ok := w.place(d)
	_, mine, _ := w.place(i)
	if !ok || w.nodes[n].after&(1<<of) == 0 {
		return false
	}
	if mine == 1 && !w.remade(s, of) {
		return round == 0
	}
	return round == mine
}

// checkNode is what holds of a node and its runs.
func (w *world) checkNode(s *state, k int) string {
	n := uint8(k) // at most maxRuns
	i := w.latest(s, n)
	r := &s.runs[i]
	closed, goesOn := s.flow.closed, r.status.active() && r.status != cancelling
	switch {
	case i != n && s.runs[n].status.active() && r.status.active():
		return "two runs of a node are active"
	case s.flow.finished && (r.status.active() || r.status == absent && closed == 0):
		return "a flow has finished before its runs"
	case goesOn && !s.flow.tend && closed >= 1 && w.nodes[k].when == ifSucceeded:
		return "a node goes on although its flow was cancelled"
	case goesOn && !s.flow.tend && closed == 2:
		return "a node goes on although its flow was cancelled twice"
	case !r.begun:
		return ""
	}
	bad, undo := false, false
	_, round, _ := w.place(i)
	for d := range uint8(maxRuns) {
		if !w.goesAfter(s, n, i, d) {
			continue
		}
		x := &s.runs[d]
		if !x.status.ended() && (x.status != absent || closed == 0) {
			return "a node runs before what it goes after has ended"
		}
		bad = bad || x.status != succeeded
		undo = undo || w.undoes(s, n, round, x)
	}
	if w.nodes[k].when == ifSucceeded && bad || w.nodes[k].when == ifFailed && !undo {
		return "a node runs although its condition is not met"
	}
	return ""
}

// mayWait reports a run that waits, directly or behind others, for a signal that was never sent.
func (w *world) mayWait(s *state, i uint8) bool {
	r := &s.runs[i]
	if !r.status.waiting() || r.due || r.truly.kinds == 0 || r.truly.kinds&forTime != 0 ||
		w.satisfied(s, i, r.truly) {
		return false
	}
	if r.truly.kinds&forSignal != 0 {
		return true
	}
	n, _, isNode := w.place(i)
	for k := range uint8(maxRuns) {
		behind := w.parent[k] == i+1 || r.listens && k == 0 || isNode && w.goesAfter(s, n, i, k)
		if k != i && behind && w.mayWait(s, k) {
			return true
		}
	}
	return false
}

// atEnd is what holds when nothing more happens.
func (w *world) atEnd(s *state) string {
	for i := range uint8(maxRuns) {
		switch r := &s.runs[i]; {
		case r.untold:
			return "the end of a run stays untold"
		case r.status.active() && !w.mayWait(s, i):
			return "a run is lost: nothing ever looks at it again"
		}
	}
	if !s.flow.begun {
		return ""
	}
	stays := false
	for k := range w.nodes {
		n := uint8(k) // at most maxRuns
		i := w.latest(s, n)
		r := &s.runs[i]
		active := r.status.active()
		stays = stays || active
		if active || r.status == absent || r.begun || s.flow.closed == 2 {
			continue
		}
		undo := false
		_, round, _ := w.place(i)
		for d := range uint8(maxRuns) {
			undo = undo || w.goesAfter(s, n, i, d) && w.undoes(s, n, round, &s.runs[d])
		}
		if w.nodes[k].when == ifFailed && undo {
			return "what began and did not succeed is not undone"
		}
		if w.nodes[k].when == always {
			return "a node that always runs did not"
		}
	}
	if !stays && !s.flow.finished {
		return "a flow whose runs have ended has not finished"
	}
	return ""
}

// longestRecovery is within how many steps everything has ended once faults end.
const longestRecovery = 300

// Settles asks whether everything ends: all processes stop, then faults and the outside end, and in one fair order
// (work, tick, time) each run ends or waits for a signal that was never sent.
func (w *world) Settles(s state, settled *explore.Space[state]) (bad string, log []string, took int) {
	s.procs = [maxProcs]process{}
	s.deaths = w.deaths
	if _, isNew := settled.Add(&s); !isNew {
		return "", nil, 0
	}
	q := *w
	q.fails, q.workers = 0, maxProcs
	log = append(log, explore.Line("--- all processes stop, faults end ---", w.Show(&s)))
	for n := range longestRecovery {
		best, found := label{order: outside}, false
		var next state
		q.Steps(&s, func(l label, t state, wrong string) {
			if l.order < best.order && (t != s || wrong != "") {
				best, next, found = l, t, true
				if wrong != "" {
					bad = wrong
				}
			}
		})
		if !found {
			return w.atEnd(&s), log, n
		}
		s = next
		q.Canon(&s)
		log = append(log, explore.Line(best.String(), w.Show(&s)))
		if bad == "" {
			bad = w.Check(&s)
		}
		if bad != "" {
			return bad, log, n
		}
	}
	return "it goes on for ever", append(log[:13:13], "and so on"), longestRecovery
}

// Show is a state in one line.
func (w *world) Show(s *state) (text string) {
	for i := range s.runs {
		r := &s.runs[i]
		if r.status == absent {
			continue
		}
		text += fmt.Sprintf(" run %d %s", i, statusName(r.status))
		for k, on := range [...]bool{r.due, r.inForce, r.over, r.slot, r.untold, r.late, r.listened} {
			if on {
				text += [...]string{" due", " waits", " lease-over", " slot", " e", " late", " listened"}[k]
			}
		}
		text += fmt.Sprintf(" %d/%b,%b ended%d have%d;", r.counted, r.inbox[0], r.inbox[1], r.ended, r.have)
	}
	if s.flow.begun {
		text += fmt.Sprintf(" flow closed%d tend %v finished %v round%d",
			s.flow.closed, s.flow.tend, s.flow.finished, s.flow.round)
	}
	return text
}

func statusName(s status) string {
	return [...]string{
		"absent", "queued", "scheduled", "running", "cancelling", "retrying", "released", "succeeded", "failed",
		"cancelled", "pruned",
	}[s]
}
