package main

import "time"

// status is a run's, as far as the simulation tells them apart.
type status byte

const (
	queued status = iota
	retrying
	running
	succeeded
	failed
)

func (s status) terminal() bool { return s >= succeeded }

// cohort is so many runs that do the same at the same time; one in small worlds. Its runs share a partition of the
// table and a shard of each index, which cohorts are dealt to in turn.
type cohort struct {
	weight float64
	place  uint64 // of its partition key
	shard  int
	hash   int           // of its id
	number int           // of its slot, or of the one it had
	holds  bool          // a slot
	took   time.Duration // it
	full   bool          // of a bounded queue that has no room

	status   status
	sequence int // grows with each commit: what was read before does not hold any more
	marker   marker
	at       time.Duration // the marker's

	created, dueAt time.Duration
	leaseEnd       time.Duration
	attempts       int
	failures       int
	firstSent      time.Duration // of the wakeups since the last claim
	sent           time.Duration
}

// abandoned is the number of attempts that ended without an outcome, once the lease is over.
func (c *cohort) abandoned() int { return c.attempts - c.failures }
