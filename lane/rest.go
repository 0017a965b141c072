package lane

import (
	"bytes"
	"time"

	"github.com/runlane/runlane-go"
)

// EventAtRest is the event as every storage keeps and returns it: sharing nothing with e, times in UTC and whole
// milliseconds, the environment spelled out, no empty meta. A storage uses it for the records of a commit, so that they
// are exactly what it lists later. It is [runlane.Event.AtRest].
func EventAtRest(e runlane.Event) runlane.Event { return e.AtRest() }

// RunAtRest is the projection as every storage keeps and returns it, like [EventAtRest].
func RunAtRest(r *runlane.Run) *runlane.Run {
	r = r.Clone()
	r.Environment = runlane.Environment(r.Environment.Name())
	r.Waiting = r.Waiting.AtRest()
	round(&r.RunAt, &r.StartedAt, &r.FinishedAt, &r.DispatchedAt, &r.DispatchExpiresAt, &r.CreatedAt, &r.UpdatedAt,
		&r.Lease.ExpiresAt, &r.Source.FireTime, &r.Source.CreatedAt)
	return r
}

// RecordAtRest is the record as every storage keeps and returns it, like [EventAtRest]: with no empty result, and no
// fault.
func RecordAtRest(r *StepRecord) *StepRecord {
	c := *r
	c.Result, c.Fault = bytes.Clone(r.Result), ""
	if len(c.Result) == 0 {
		c.Result = nil
	}
	round(&c.StartedAt, &c.At)
	return &c
}

// SameRecord reports records that are the same at rest.
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
