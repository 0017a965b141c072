package lane

import (
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
	round(&r.RunAt, &r.StartedAt, &r.FinishedAt, &r.DispatchedAt, &r.DispatchExpiresAt, &r.CreatedAt, &r.UpdatedAt,
		&r.Lease.ExpiresAt, &r.Source.FireTime)
	return r
}

func round(times ...*time.Time) {
	for _, t := range times {
		*t = runlane.UTCMillis(*t)
	}
}
