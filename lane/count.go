package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// CountQuery is what [Storage].CountRuns counts.
type CountQuery struct {
	// Environment scopes the runs.
	Environment runlane.Environment
	// Queue is theirs.
	Queue runlane.QueueName
	// At is the last instant at which a run that waits for a time is due, and until which a reservation is over.
	At time.Time
	// QueuedAt is the same for queued runs, whose time another clock may have written.
	QueuedAt time.Time
}

// RunCounts are the active runs of a queue. Each is in one of Owned, Due and Later.
type RunCounts struct {
	// Owned are those that a worker has.
	Owned int
	// Due are those that wait and are due.
	Due int
	// First is since when the first of them is.
	First time.Time
	// FirstID is that run.
	FirstID runlane.RunID
	// Reserved are those of Due that have a slot.
	Reserved int
	// Later are the others.
	Later int
	// Next is when the first of them is due.
	Next time.Time
}

// Saw counts n runs that are due at an instant or later, the first of them at first.
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
