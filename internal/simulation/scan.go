package main

import "time"

// stage is who has something to do about a run.
type stage int

const (
	nobody stage = iota
	finalizing
	delivering
	publishing
	redelivering
)

// scanKinds are dynamostore's, without those of bounded queues.
var scanKinds = map[stage][]marker{
	finalizing:   {deliverable, waiting, leased},
	delivering:   {deliverable, waiting, leased},
	publishing:   {unpublished, deliverable, waiting},
	redelivering: {parked, deliverable, leased},
}

// look judges a run as dynamostore's look does: whose work it is, and the marker where it is nobody's.
func look(c *cohort, at time.Duration) (stage, move) {
	switch c.status {
	case running:
		if c.leaseEnd <= at {
			return delivering, move{}
		}
		return nobody, move{to: leased, at: c.leaseEnd}
	case retrying:
		if c.dueAt <= at {
			return delivering, move{}
		}
		return nobody, move{to: waiting, at: c.dueAt}
	case queued:
		if c.marker == waiting { // created for later
			if c.dueAt <= at {
				return delivering, move{}
			}
			return nobody, move{to: waiting, at: c.dueAt}
		}
		if c.sent == 0 {
			return publishing, move{}
		}
		if next := redeliveryAt(c.firstSent, c.sent); next > at {
			return nobody, move{to: parked, at: next}
		}
		return redelivering, move{}
	default:
		return nobody, move{}
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

// reach is how far a scan looks: at what is due in a while, and through how many pages.
type reach struct {
	ahead time.Duration
	pages float64
}

// scan reads the due markers of a stage, the oldest first, until it has found enough for a round, has examined its bound, or its time
// is over. A row at which nobody has anything to do gets another marker, one after the other as dynamostore moves them.
func (t *tickRun) scan(wanted stage, far reach, until time.Duration, then func(found []*cohort, more bool)) {
	w, now := t.world, t.world.now
	var found []*cohort
	var kept []row
	var reading time.Duration // of rows that were read since the last wait
	examined, wantedRuns := 0.0, 0.0
	end := func(more bool) {
		w.after(reading, func() {
			for _, r := range kept {
				if !r.stale() {
					w.index.put(r)
				}
			}
			then(found, more)
		})
	}
	var next func()
	next = func() {
		for {
			if w.now+reading >= until || examined >= far.pages*maxScanRows || wantedRuns >= far.pages*defaultTickLimit {
				end(true)
				return
			}
			r, ok := w.index.next(now+far.ahead, scanKinds[wanted])
			if !ok {
				end(false)
				return
			}
			if r.marker == deliverable && patient(&r, now) { // the query ends before it
				kept = append(kept, r)
				continue
			}
			c := r.cohort
			examined += c.weight
			// A hundred rows are a query, and a batch of runs and one of deliveries.
			reading += time.Duration(c.weight / batchKeys * float64(indexTime+2*readTime))
			w.used(&readRuns, spent{Requests: c.weight / batchKeys, Reads: c.weight})
			if patient(&r, now) {
				kept = append(kept, r)
				continue
			}
			w.used(&readDeliveries, spent{Requests: c.weight / batchKeys, Reads: c.weight})
			whose, to := look(c, now+far.ahead)
			if whose != nobody {
				kept = append(kept, r)
				if whose == wanted {
					found = append(found, c)
					wantedRuns += c.weight
				}
				continue
			}
			wait := reading + time.Duration((c.weight-1)*float64(writeTime)) // moving is a write each
			reading = 0
			w.after(wait, func() {
				if r.stale() {
					next()
					return
				}
				w.outcome.looked += c.weight
				w.send(step{request: &moveMarker, cohort: c, move: &to, then: func(x result) {
					if x == refused {
						kept = append(kept, r)
					}
					next()
				}})
			})
			return
		}
	}
	next()
}
