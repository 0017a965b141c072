package main

import (
	"math"
	"time"
)

// stage is who has something to do about a run.
type stage int

const (
	noStage stage = iota
	finalizing
	delivering
	publishing
	redelivering
	dispatching
	telling
)

// scanKinds are dynamostore's, without the walk over what waits for a slot.
var scanKinds = map[stage][]marker{
	finalizing:   {deliverable, waiting, leased},
	delivering:   {deliverable, waiting, leased},
	publishing:   {unpublished, deliverable, waiting},
	redelivering: {parked, deliverable, leased},
	dispatching:  {deliverable, waiting, leased, unpublished, parked},
	telling:      {ended},
}

// judge judges a run as dynamostore's look does: the stage that it is for, and the marker where there is none.
func judge(c *cohort, at time.Duration) (stage, move) {
	switch c.status {
	case running:
		if c.leaseEnd <= at {
			return delivering, move{}
		}
		return noStage, move{to: leased, at: c.leaseEnd}
	case retrying:
		if c.dueAt <= at && c.full {
			return dispatching, move{to: slotless, at: c.dueAt}
		}
		if c.dueAt <= at {
			return delivering, move{}
		}
		return noStage, move{to: waiting, at: c.dueAt}
	case queued:
		if c.marker == waiting { // created for later
			if c.dueAt <= at {
				return delivering, move{}
			}
			return noStage, move{to: waiting, at: c.dueAt}
		}
		if c.sent == 0 {
			return publishing, move{}
		}
		if next := redeliveryAt(c.firstSent, c.sent); next > at {
			return noStage, move{to: parked, at: next}
		}
		return redelivering, move{}
	default:
		return noStage, move{}
	}
}

// patient reports that the tick leaves a row to those who are surely at work on it. All waits here are short.
func patient(r *row, at time.Duration) bool {
	switch r.marker {
	case deliverable:
		return r.at > at-queuedPatience
	case waiting:
		return r.at > at-shortWaitPatience
	default:
		return false
	}
}

// reach is how far a scan looks: at what is due in a while, and until it has found so many.
type reach struct {
	ahead  time.Duration
	enough float64
}

// scan reads the due markers of a stage, the oldest first, page after page until it has found enough for a round or its
// time is over. Rows at which no stage has anything to do get another marker, a batch at a time.
func (t *tickRun) scan(wanted stage, far reach, until time.Duration, then func(found []*cohort, more bool)) {
	l := &look{tick: t, wanted: wanted, far: far, until: until, began: t.world.now, then: then}
	l.next()
}

// look is one scan under way.
type look struct {
	tick   *tickRun
	wanted stage
	far    reach
	until  time.Duration
	began  time.Duration // when it was asked: what is due by then is looked at
	then   func(found []*cohort, more bool)

	found   []*cohort
	kept    []row
	reading time.Duration // of rows that were read since the last wait
	matched float64       // runs of the wanted stage

	batch  float64 // rows examined since markers were moved last
	moving []leaving

	over, more bool // nothing more is read; there was more to read
}

// leaving is a row that gets another marker.
type leaving struct {
	row row
	to  move
}

func (l *look) next() {
	w := l.tick.world
	for !l.over && (l.batch < batchKeys || len(l.moving) == 0) {
		if w.now+l.reading >= l.until || l.matched >= l.far.enough {
			l.over, l.more = true, true
		} else if r, ok := w.index.next(l.began+l.far.ahead, scanKinds[l.wanted]); ok {
			if l.batch >= batchKeys {
				l.batch = 0 // no markers had to be moved
			}
			l.examine(r)
		} else {
			l.over = true
		}
	}
	if len(l.moving) > 0 {
		l.move()
		return
	}
	w.after(l.reading, func() {
		for _, r := range l.kept {
			if !r.stale() {
				w.index.put(r)
			}
		}
		l.then(l.found, l.more)
	})
}

// examine reads a row's run, and judges it.
func (l *look) examine(r row) {
	w, c := l.tick.world, r.cohort
	if r.marker == deliverable && patient(&r, l.began) { // the query ends before it
		l.kept = append(l.kept, r)
		return
	}
	if (l.wanted == delivering || l.wanted == redelivering) && c.full || l.wanted == dispatching && !c.full {
		l.reading += time.Duration(c.weight / maxScanChunk * float64(indexTime)) // dropped by its key
		l.kept = append(l.kept, r)
		return
	}
	l.batch += c.weight
	// A hundred rows are a query, and a batch of runs and one of deliveries.
	l.reading += time.Duration(c.weight / batchKeys * float64(indexTime+2*readTime))
	w.used(&readRuns, spent{Requests: c.weight / batchKeys, Reads: c.weight})
	if patient(&r, l.began) {
		l.kept = append(l.kept, r)
		return
	}
	w.used(&readDeliveries, spent{Requests: c.weight / batchKeys, Reads: c.weight})
	whose, to := judge(c, l.began+l.far.ahead)
	switch {
	case whose == dispatching && l.wanted == dispatching: // there is no slot: it goes to where runs wait for one
		l.moving = append(l.moving, leaving{r, to})
		return
	case whose == l.wanted:
		l.found = append(l.found, c)
		l.matched += c.weight
	case whose == noStage:
		l.moving = append(l.moving, leaving{r, to})
		return
	case whose == redelivering && r.marker == deliverable && l.wanted != publishing: // out of the way of other stages
		l.moving = append(l.moving, leaving{r, move{to: parked, at: redeliveryAt(c.firstSent, c.sent)}})
		return
	}
	l.kept = append(l.kept, r)
}

// move gives the rows of a batch their markers: a write for each run, maxParallel of them at once.
func (l *look) move() {
	w, moving := l.tick.world, l.moving
	runs := 0.0
	for _, m := range moving {
		runs += m.row.cohort.weight
	}
	wait := l.reading + time.Duration((math.Ceil(runs/maxParallel)-1)*float64(writeTime))
	l.moving, l.reading, l.batch = nil, 0, 0
	w.after(wait, func() {
		left := 1
		moved := func() {
			if left--; left == 0 {
				l.next()
			}
		}
		for _, m := range moving {
			if m.row.stale() {
				continue
			}
			left++
			w.outcome.looked += m.row.cohort.weight
			w.send(step{request: &moveMarker, cohort: m.row.cohort, move: &m.to, then: func(x result) {
				if x == refused {
					l.kept = append(l.kept, m.row)
				}
				moved()
			}})
		}
		moved()
	})
}
