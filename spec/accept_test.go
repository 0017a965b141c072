package main

import "github.com/runlane/runlane-go/spec/explore"

// acceptor follows what is seen of a real engine: the states in which the model may be, given everything seen so far.
type acceptor struct {
	world *world
	now   *explore.Space[state]
}

func newAcceptor(w *world) *acceptor {
	a := &acceptor{world: w, now: explore.NewSpace[state]()}
	a.now.Add(&state{})
	return a
}

// hiddenSteps is how many steps that show nothing may come before one that shows: a send, a stop, a read with its decision.
const hiddenSteps = 3

// seen keeps what remains of a state when only stored items can be read. What a status makes irrelevant is dropped.
func seen(s *state) (o state) {
	o.slots = s.slots
	for i := range s.runs {
		r, to := &s.runs[i], &o.runs[i]
		*to = item{status: r.status, kind: r.kind, at: r.at, slot: r.slot, row: r.row, rowAt: r.rowAt}
		switch r.status {
		case running, cancelRequested:
			to.lease = r.lease
		case queued:
			to.reserved = r.reserved
		case scheduled, waiting:
			to.runAt = r.runAt
		case absent, terminal:
			*to = item{status: r.status}
		}
		if to.row == noRow || to.row == dead || to.row == published && to.status != queued {
			to.rowAt = 0
		}
	}
	return o
}

// passes lets time pass for all.
func (a *acceptor) passes() {
	next := explore.NewSpace[state]()
	for i := range a.now.States {
		s := a.world.later(a.now.States[i])
		a.world.tidy(&s)
		next.Add(&s)
	}
	a.now = next
}

// accepts takes one observation: it is what is seen already, or one step that shows, after some that do not, leads to it.
func (a *acceptor) accepts(to state) bool {
	next, hidden := explore.NewSpace[state](), explore.NewSpace[state]()
	for i := range a.now.States {
		if seen(&a.now.States[i]) == to {
			next.Add(&a.now.States[i])
		}
		hidden.Add(&a.now.States[i])
	}
	if len(next.States) > 0 {
		a.now = next
		return true
	}
	from, end := 0, len(hidden.States)
	for depth := 0; depth <= hiddenSteps; depth++ {
		for ; from < end; from++ {
			s := hidden.States[from]
			before := seen(&s)
			a.world.Steps(&s, func(l label, t state, _ string) {
				if l.text == "time" {
					return
				}
				a.world.tidy(&t)
				switch seen(&t) {
				case to:
					next.Add(&t)
				case before:
					if depth < hiddenSteps {
						hidden.Add(&t)
					}
				}
			})
		}
		end = len(hidden.States)
	}
	a.now = next
	return len(next.States) > 0
}
