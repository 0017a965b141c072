package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// CountQuery selects the runs of a Queue in an Environment for [Storage].CountRuns.
type CountQuery struct {
	Environment runlane.Environment
	Queue       runlane.QueueName
	// At is the time for the due check of waiting runs, and for the expiry of reservations.
	At time.Time
	// QueuedAt is the same for queued runs, since another clock may have written their time.
	QueuedAt time.Time
}

// RunCounts counts the active runs of a queue. Each is in one of Owned, Due and Later.
type RunCounts struct {
	// Owned by a worker.
	Owned int
	// Due and waiting.
	Due int
	// First is the earliest due time of these.
	First time.Time
	// FirstID is the run of First.
	FirstID runlane.RunID
	// Reserved is the part of Due with a slot.
	Reserved int
	// Later: the rest.
	Later int
	// Next is the earliest due time of the rest.
	Next time.Time
}

// Saw counts n runs that are due or later. first and id belong to the earliest of them.
func (c *RunCounts) Saw(due bool, n int, first time.Time, id runlane.RunID) {
	switch {
	case n == 0:
	case due:
		if c.Due == 0 || first.Before(c.First) {
			c.First, c.FirstID = first, id
		}
		c.Due += n
	default:
		if c.Later == 0 || first.Before(c.Next) {
			c.Next = first
		}
		c.Later += n
	}
}
