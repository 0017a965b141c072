package lane

import (
	"bytes"
	"time"

	"github.com/runlane/runlane-go"
)

// EventAtRest is [runlane.Event.AtRest]: a deep copy in the form that every storage keeps and returns. Use it for the
// records of a commit, so that they equal the later lists.
func EventAtRest(e runlane.Event) runlane.Event { return e.AtRest() }

// RunAtRest is the same for the projection.
func RunAtRest(r *runlane.Run) *runlane.Run {
	r = r.Clone()
	r.Environment = runlane.Environment(r.Environment.Name())
	r.Waiting = r.Waiting.AtRest()
	if r.Debounced != nil {
		round(&r.Debounced.Latest)
	}
	round(&r.RunAt, &r.StartedAt, &r.FinishedAt, &r.DispatchedAt, &r.DispatchExpiresAt, &r.CreatedAt, &r.UpdatedAt,
		&r.Lease.ExpiresAt, &r.Source.FireTime, &r.Source.CreatedAt)
	return r
}

// RecordAtRest is the same for a record: without an empty result, and without Fault.
func RecordAtRest(r *StepRecord) *StepRecord {
	c := *r
	c.Result, c.Fault = bytes.Clone(r.Result), ""
	if len(c.Result) == 0 {
		c.Result = nil
	}
	round(&c.StartedAt, &c.At)
	return &c
}

// SameRecord reports whether two records are equal at rest.
func SameRecord(a, b *StepRecord) bool {
	a, b = RecordAtRest(a), RecordAtRest(b)
	return a.Name == b.Name && a.Kind == b.Kind && a.Attempt == b.Attempt && a.StartedAt.Equal(b.StartedAt) &&
		a.At.Equal(b.At) && a.Type == b.Type && bytes.Equal(a.Result, b.Result)
}

func round(times ...*time.Time) {
	for _, t := range times {
		*t = runlane.UTCMillis(*t)
	}
}
