package main

import (
	"math"
	"slices"
	"time"
)

// offer is the search of one that freed a slot for the run that gets it: core's handOver and dynamostore's offer.
type offer struct {
	slots *slots
	mine  int // the number that was freed
	until time.Duration
	then  func()
	round int

	rows             []*cohort // that were read and not judged yet
	read, pages      int       // rows and pages so far
	more             bool
	position, stride int
	share, shares    int
	free             int
	number           int
}

// handOver offers the slot that a run does not hold any more.
func (w *world) handOver(c *cohort, then func()) {
	o := &offer{slots: w.slots, mine: c.number, until: w.now + afterCommitTime, then: then}
	o.search()
}

func (o *offer) search() {
	s := o.slots
	limit := len(s.holders)
	if o.round++; o.round > handOverRounds {
		o.then()
		return
	}
	o.rows, o.read, o.pages, o.more = nil, 0, 0, true
	o.shares = windowsOf(limit)
	o.page(min(max(2*limit, 16), slotWindow), func() {
		if len(o.rows) == 0 && !o.more {
			o.then()
			return
		}
		s.look(o.mine, 1, o.until, func(r *slotReading) {
			if r == nil || len(r.free) == 0 {
				o.then()
				return
			}
			o.free, o.stride = len(r.free), len(r.free)
			if o.position = slices.Index(r.free, o.mine); o.position < 0 {
				o.position = s.world.random.IntN(o.free)
			}
			o.number = r.free[o.position]
			o.share = o.number / windowWidth(limit)
			if o.more && len(o.rows) < 2*o.stride*o.shares {
				o.page(offerRows, func() { o.find(r) })
				return
			}
			o.find(r)
		})
	})
}

// page reads the next rows of runs that wait: eventually, from the index.
func (o *offer) page(size int, then func()) {
	s := o.slots
	s.waiting = slices.DeleteFunc(s.waiting, func(c *cohort) bool { return c.marker != slotless })
	from := min(o.read, len(s.waiting))
	rows := slices.Clone(s.waiting[from:min(from+size, len(s.waiting))])
	request := scanSlots
	request.reads = units(len(rows)*rowBytes) / 2
	s.world.send(step{request: &request, cohort: s.self, until: o.until, then: func(x result) {
		if x != carried {
			o.then()
			return
		}
		o.rows = append(o.rows, rows...)
		o.read, o.pages, o.more = o.read+len(rows), o.pages+1, len(rows) == size
		then()
	}})
}

// find reads runs at growing distances until one of them waits, page after page.
func (o *offer) find(r *slotReading) {
	var own, others []*cohort
	for _, c := range o.rows {
		switch {
		case r.holding(c):
		case c.hash%o.shares == o.share:
			own = append(own, c)
		default:
			others = append(others, c)
		}
	}
	if len(own) == 0 {
		own = others
	}
	o.among(own, r)
}

func (o *offer) among(rows []*cohort, r *slotReading) {
	length := len(rows)
	nextPage := func() {
		if !o.more || o.pages >= offerPages {
			o.then()
			return
		}
		o.position = max(o.position-length, 0)
		o.rows = nil
		o.page(offerRows, func() { o.find(r) })
	}
	if length == 0 {
		nextPage()
		return
	}
	if o.position >= length && o.free > 1 {
		o.position %= length
	}
	var try func(batch int)
	try = func(batch int) {
		var chosen []*cohort
		for len(chosen) < batch && len(rows) > 0 && (o.position < len(rows) || !o.more) {
			at := o.position
			if at >= len(rows) {
				at = len(rows) - 1
				if o.free > 1 {
					at = o.slots.world.random.IntN(len(rows))
				}
			}
			chosen, rows = append(chosen, rows[at]), slices.Delete(rows, at, at+1)
			o.position, o.stride = o.position+o.stride-1, 2*o.stride
		}
		o.judge(chosen, func() {
			if batch == 1 && len(rows) > 0 {
				try(offerReads)
				return
			}
			nextPage()
		})
	}
	try(1)
}

// judge reads runs, and reserves for the first that waits.
func (o *offer) judge(chosen []*cohort, none func()) {
	if len(chosen) == 0 {
		none()
		return
	}
	request := readRuns
	request.reads = float64(len(chosen))
	o.slots.world.send(step{request: &request, cohort: chosen[0], until: o.until, then: func(result) {
		for _, c := range chosen {
			if c.marker == slotless && !c.holds {
				o.take(c)
				return
			}
		}
		none()
	}})
}

// take reads the run once more, as the runtime does, and reserves for it.
func (o *offer) take(c *cohort) {
	w := o.slots.world
	w.send(step{request: &readRuns, cohort: c, until: o.until, then: func(result) {
		if c.marker != slotless {
			o.search()
			return
		}
		o.slots.reserve(c, o.number, o.until, func(moved bool) {
			if moved {
				o.search()
				return
			}
			o.then()
		})
	}})
}

// reserveFree is the tick's: it reads all slots once, and reserves what is free for those that wait longest, several at
// a time.
func (s *slots) reserveFree(until time.Duration, then func(n float64)) {
	w := s.world
	r := &slotReading{}
	s.query(r, 0, len(s.holders), until, func(ok bool) {
		s.waiting = slices.DeleteFunc(s.waiting, func(c *cohort) bool { return c.marker != slotless })
		chosen := slices.Clone(s.waiting[:min(len(s.waiting), len(r.free), defaultTickLimit)])
		if !ok || len(chosen) == 0 {
			then(0)
			return
		}
		w.random.Shuffle(len(r.free), func(i, j int) { r.free[i], r.free[j] = r.free[j], r.free[i] })
		request := readRuns
		request.reads = float64(len(chosen))
		w.send(step{request: &request, cohort: chosen[0], then: func(result) {
			next, lanes := 0, int(math.Min(tickParallel, float64(len(chosen))))
			left := lanes
			var lane func()
			lane = func() {
				if next == len(chosen) || w.now >= until {
					if left--; left == 0 {
						then(float64(next))
					}
					return
				}
				c, number := chosen[next], r.free[next]
				next++
				s.reserve(c, number, until, func(bool) { lane() })
			}
			for range lanes {
				lane()
			}
		}})
	})
}
