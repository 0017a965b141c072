package main

import "time"

// step is a request for each run of a cohort, and what follows it.
type step struct {
	request *request
	cohort  *cohort
	move    *move  // of the entry in the index due; nil: it stays
	ends    status // of a request that writes the index done
	// sequence is what the commit depends on; committed is told when it has happened. A request without it depends on
	// nothing.
	sequence  int
	committed func()
	then      func(result)

	slots  *slots // of which it takes the number, if that is free
	number int
	yields bool          // what refuses the slot counts as a slot that is taken
	until  time.Duration // when it is not tried again any more; 0: never
	looks  func()        // at the moment in which it reads
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
	taken := s.slots != nil && s.slots.holders[s.number] != nil
	if s.committed != nil && (c.sequence != s.sequence || taken && w.refuses(s) == "") {
		if taken {
			w.slots.failed++
		}
		// A condition that fails is billed like a write, without the index.
		units := float64(r.table+r.slot) * c.weight
		w.table.write(c.place, float64(r.table)*c.weight)
		if r.slot > 0 {
			w.slots.write(float64(r.slot) * c.weight)
		}
		w.used(r, spent{Requests: c.weight, Writes: units})
		w.after(r.takes, func() { s.then(lost) })
		return
	}
	if limit := w.refuses(s); limit != "" {
		w.outcome.refuse(w.now, limit, c.weight)
		w.used(r, spent{Requests: c.weight})
		wait := throttleBackoff << min(try-1, 4)
		switch {
		case limit == limitSlots && s.yields:
			w.after(r.takes, func() { s.then(lost) })
		case try == maxConflictTries:
			s.then(refused)
		case s.until > 0 && w.now+wait > s.until:
			w.after(s.until-w.now, func() { s.then(refused) })
		default:
			w.after(wait, func() { w.try(s, try+1) })
		}
		return
	}
	w.carry(s)
	if s.looks != nil {
		s.looks()
	}
	if s.slots != nil {
		s.slots.put(c, s.number)
	}
	if s.committed != nil {
		c.sequence++
		s.committed()
	}
	w.after(r.takes, func() { s.then(carried) })
}

// read is the partition of what is read, and the limit of its reads.
func (w *world) read(s *step) (p *part, limit string) {
	switch {
	case s.request.ofIndex:
		return w.due.part(w.dueKeys[slotless][0]), limitWaiting
	case w.slots != nil && s.cohort == w.slots.self:
		return w.table.part(s.cohort.place), limitSlotReads
	default:
		return w.table.part(s.cohort.place), limitReads
	}
}

// refuses names what has no capacity for a request. Nothing of it is used then.
func (w *world) refuses(s *step) string {
	r, c := s.request, s.cohort
	if r.reads > 0 {
		if p, limit := w.read(s); !p.reads.admits(w.now) {
			return limit
		}
		return ""
	}
	limit := w.table.refuses(w.now, c.place, float64(r.table)*c.weight)
	if limit == "" && r.slot > 0 {
		if limit = w.table.refuses(w.now, w.slots.self.place, float64(r.slot)*c.weight); limit == limitTable {
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
		p, _ := w.read(s)
		p.reads.take(use.Reads)
		if w.slots != nil && c == w.slots.self && !r.ofIndex {
			w.slots.read += use.Reads
		}
	}
	if r.table > 0 {
		w.table.write(c.place, float64(r.table)*c.weight)
	}
	if r.slot > 0 {
		w.slots.write(float64(r.slot) * c.weight)
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
