package main

import (
	"math"
	"slices"
	"time"
)

// slots are those of one concurrency key, number by number: one partition key of the table, whatever the limit. What
// waits for one stands in one shard of the index.
type slots struct {
	world   *world
	self    *cohort // whose place is that of the slots
	holders []*cohort
	waiting []*cohort // the longest first; some may have moved on
	// whole reads all slots each time, and once more for a reservation: as it was before dynamostore read windows.
	whole bool

	written, read float64 // units so far
	failed        float64 // conditions of slots
}

// newSlots are the slots of a limit, all free.
func newSlots(w *world, limit int) *slots {
	key := w.hash("slot:bounded:")
	return &slots{world: w, self: &cohort{weight: 1, place: key}, holders: make([]*cohort, limit)}
}

// slotReading is what a reserver knows: free numbers, and the runs that hold others.
type slotReading struct {
	free []int
	read [][2]int // numbers from one up to another
	at   time.Duration
}

// holding reports that it shows a run's slot.
func (r *slotReading) holding(c *cohort) bool {
	return c.holds && c.took <= r.at &&
		slices.ContainsFunc(r.read, func(n [2]int) bool { return n[0] <= c.number && c.number < n[1] })
}

// windowsOf and windowWidth are dynamostore's.
func windowsOf(limit int) int   { return max((limit+slotWindow-1)/slotWindow, 1) }
func windowWidth(limit int) int { return (limit + windowsOf(limit) - 1) / windowsOf(limit) }

// units are what a strong query for so many bytes reads.
func units(size int) float64 {
	return math.Max(math.Ceil(float64(size)/readUnit), 1)
}

// query reads numbers from one on up to another, strongly, until an instant at most.
func (s *slots) query(r *slotReading, from, end int, until time.Duration, then func(ok bool)) {
	request := readSlots
	size := 0
	for n := from; n < end; n++ {
		if holder := s.holders[n]; holder != nil {
			size += slotBytes
			if holder.status == queued {
				size += untilBytes
			}
		}
	}
	request.reads = units(size)
	s.world.send(step{request: &request, cohort: s.self, until: until, looks: func() {
		r.read, r.at = append(r.read, [2]int{from, end}), s.world.now
		for n := from; n < end; n++ {
			if s.holders[n] == nil {
				r.free = append(r.free, n)
			}
		}
	}, then: func(x result) { then(x == carried) }})
}

// read is dynamostore's readFree: the whole partition of a small limit, of a large one what is above it, and windows,
// that of a number first. then gets nil where it could not be read.
func (s *slots) look(near, windows int, until time.Duration, then func(*slotReading)) {
	r := &slotReading{}
	limit := len(s.holders)
	if limit <= slotWindow || s.whole {
		s.query(r, 0, limit, until, func(ok bool) {
			if !ok {
				r = nil
			}
			then(r)
		})
		return
	}
	width := windowWidth(limit)
	order := s.world.random.Perm(windowsOf(limit))
	if near >= 0 {
		i := slices.Index(order, near/width)
		order[0], order[i] = order[i], order[0]
	}
	read := 0
	left, fine := 2, true // what is above the limit, and the first window, at once
	var next func(ok bool)
	next = func(ok bool) {
		left--
		fine = fine && ok
		switch {
		case left > 0:
		case !fine:
			then(nil)
		case len(r.free) > 0 || read == min(windows, len(order)):
			then(r)
		default:
			left = 1
			read++
			s.query(r, order[read-1]*width, min((order[read-1]+1)*width, limit), until, next)
		}
	}
	read++
	s.query(r, limit, limit, until, next)
	s.query(r, order[0]*width, min((order[0]+1)*width, limit), until, next)
}

// write uses capacity of their partition.
func (s *slots) write(units float64) {
	s.world.table.write(s.self.place, units)
	s.written += units
}

// any is one of the free numbers, −1 where there is none.
func (s *slots) any(r *slotReading) int {
	if r == nil || len(r.free) == 0 {
		return -1
	}
	return r.free[s.world.random.IntN(len(r.free))]
}

// put lets a run have a number.
func (s *slots) put(c *cohort, number int) {
	c.number, c.holds, c.took = number, true, s.world.now
	s.holders[number] = c
}

// free takes a run's slot from it.
func (s *slots) free(c *cohort) {
	s.holders[c.number] = nil
	c.holds = false
}

// enter triggers a run of the bounded queue: with a slot where one is found, or else without, and then it looks once
// more. What keeps it from a slot delays no run.
func (s *slots) enter(c *cohort) {
	w := s.world
	patience := w.now + requestTimeout/slotPatience
	s.look(-1, creationWindows, patience, func(r *slotReading) {
		if r == nil && s.whole { // as it was
			w.turnAway(c)
			return
		}
		number := s.any(r)
		if number < 0 {
			s.enterWaiting(c)
			return
		}
		w.send(step{
			request:   &createWithSlot,
			cohort:    c,
			move:      &move{to: deliverable, at: w.now},
			slots:     s,
			number:    number,
			yields:    true,
			committed: func() { w.made(c) },
			then: func(x result) {
				switch x {
				case carried:
					w.publish(c, nil)
				case lost:
					s.enterWaiting(c)
				case refused:
					w.turnAway(c)
				}
			},
		})
	})
}

func (s *slots) enterWaiting(c *cohort) {
	w := s.world
	w.send(step{
		request: &createWaiting, cohort: c, move: &move{to: slotless, at: w.now}, sequence: c.sequence,
		committed: func() {
			w.made(c)
			s.waiting = append(s.waiting, c)
		},
		then: func(x result) {
			if x != carried {
				w.turnAway(c)
				return
			}
			s.reserve(c, -1, w.now+afterCommitTime, func(bool) {})
		},
	})
}

// reserve takes a slot for a run that waits, the one that was found for it or −1 for any, and sends its wakeup. moved
// tells that another was faster to move the run on.
func (s *slots) reserve(c *cohort, number int, until time.Duration, then func(moved bool)) {
	w, sequence, tries := s.world, c.sequence, 0
	var take func(number int)
	again := func() {
		s.look(-1, reservationWindows, until, func(r *slotReading) {
			number := s.any(r)
			if tries == slotTries || number < 0 {
				then(false)
				return
			}
			take(number)
		})
	}
	take = func(number int) {
		tries++
		w.send(step{
			request: &reserveSlot, cohort: c, move: &move{to: deliverable, at: w.now}, slots: s, number: number,
			sequence: sequence, until: until,
			committed: func() { w.outcome.handedOver++ },
			then: func(x result) {
				switch {
				case x == carried:
					w.publish(c, func() { then(false) })
				case x == refused:
					then(false)
				case c.sequence != sequence:
					then(true)
				default:
					again()
				}
			},
		})
	}
	if number < 0 || s.whole {
		again()
		return
	}
	take(number)
}

// fill lets all slots be reserved, their wakeups come within the time of a handler, and others wait: so a key is that
// has been full for long.
func (s *slots) fill() {
	w := s.world
	limit := len(s.holders)
	for i := range limit + w.load.Waiting {
		c := w.newCohort(1)
		w.outcome.offered++
		w.made(c)
		if i >= limit {
			w.index.move(c, &move{to: slotless})
			s.waiting = append(s.waiting, c)
			continue
		}
		w.index.move(c, &move{to: deliverable})
		s.put(c, i)
		c.firstSent, c.sent = 1, 1
		w.after(time.Duration(float64(i)/float64(limit)*float64(w.load.Handler)), func() { w.queue.send(c, 0) })
	}
}
