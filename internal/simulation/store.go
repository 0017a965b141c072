package main

import "time"

// step is a request for each run of a cohort, and what follows it.
type step struct {
	request *request
	cohort  *cohort
	move    *move  // of the entry in the index due; nil: it stays
	ends    status // of a request that writes the index done
	// sequence is what the commit depends on; committed is told when it has happened. A request without it depends on nothing.
	sequence  int
	committed func()
	then      func(result)
}

// move is what a request does to a run's entry in the index due.
type move struct {
	to marker // noMarker: it is taken away
	at time.Duration
}

// result is how a request ends: carried out, lost to another commit, or refused until the tries were used up.
type result int

const (
	carried result = iota
	lost
	refused
)

// send sends a step's request, and again, as dynamostore does, where capacity is refused.
func (w *world) send(s step) { w.try(&s, 1) }

func (w *world) try(s *step, try int) {
	r, c := s.request, s.cohort
	if s.committed != nil && c.sequence != s.sequence {
		// A condition that fails is billed like a write, without the index.
		units := float64(r.table+r.slot) * c.weight
		w.table.write(c.place, units)
		w.used(r, spent{Requests: c.weight, Writes: units})
		w.after(r.takes, func() { s.then(lost) })
		return
	}
	if limit := w.refuses(s); limit != "" {
		w.outcome.refuse(w.now, limit, c.weight)
		w.used(r, spent{Requests: c.weight})
		if try == maxConflictTries {
			s.then(refused)
			return
		}
		w.after(throttleBackoff<<min(try-1, 4), func() { w.try(s, try+1) })
		return
	}
	w.carry(s)
	if s.committed != nil {
		c.sequence++
		s.committed()
	}
	w.after(r.takes, func() { s.then(carried) })
}

// read is the partition key of what is read.
func (s *step) read() uint64 {
	if s.request.ofSlots {
		return s.cohort.slot
	}
	return s.cohort.place
}

// refuses names what has no capacity for a request. Nothing of it is used then.
func (w *world) refuses(s *step) string {
	r, c := s.request, s.cohort
	if r.reads > 0 {
		if !w.table.part(s.read()).reads.admits(w.now) {
			return limitReads
		}
		return ""
	}
	limit := w.table.refuses(w.now, c.place, float64(r.table)*c.weight)
	if limit == "" && r.slot > 0 {
		if limit = w.table.refuses(w.now, c.slot, float64(r.slot)*c.weight); limit == limitTable {
			limit = limitSlots
		}
	}
	if limit == "" && s.move != nil {
		if c.marker != noMarker {
			limit = w.due.refuses(w.now, w.dueKeys[c.marker][c.shard], c.weight)
		}
		if limit == "" && s.move.to != noMarker {
			limit = w.due.refuses(w.now, w.dueKeys[s.move.to][c.shard], c.weight)
		}
	}
	if limit == "" && r.done {
		limit = w.done.refuses(w.now, w.doneKeys[s.ends][c.shard], c.weight)
	}
	return limit
}

// carry uses the capacity and moves the marker.
func (w *world) carry(s *step) {
	r, c := s.request, s.cohort
	use := spent{Requests: c.weight, Reads: r.reads * c.weight, Writes: float64(r.table+r.slot) * c.weight}
	if r.reads > 0 {
		w.table.part(s.read()).reads.take(use.Reads)
	}
	if r.table > 0 {
		w.table.write(c.place, float64(r.table)*c.weight)
	}
	if r.slot > 0 {
		w.table.write(c.slot, float64(r.slot)*c.weight)
	}
	if s.move != nil {
		if c.marker != noMarker {
			w.due.write(w.dueKeys[c.marker][c.shard], c.weight)
			use.Writes += c.weight
		}
		if s.move.to != noMarker {
			w.due.write(w.dueKeys[s.move.to][c.shard], c.weight)
			use.Writes += c.weight
		}
		w.index.move(c, s.move)
	}
	if r.done {
		w.done.write(w.doneKeys[s.ends][c.shard], c.weight)
		use.Writes += c.weight
	}
	w.used(r, use)
}

func (w *world) used(r *request, use spent) {
	sum := w.requests[r.name]
	sum.add(use)
	w.requests[r.name] = sum
	w.total.add(use)
}
