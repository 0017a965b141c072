package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// EventAtRest is the event as every storage keeps and returns it: sharing nothing with e, times in UTC and whole milliseconds,
// the environment spelled out, no empty meta. A storage uses it for the records of a commit, so that they are exactly what it
// lists later.
func EventAtRest(e runlane.Event) runlane.Event {
	e = e.Clone()
	e.Environment = runlane.Environment(e.Environment.Name())
	if len(e.Meta) == 0 {
		e.Meta = nil
	}
	round(&e.OccurredAt)
	switch b := e.Body.(type) {
	case *runlane.RunCreated:
		round(&b.RunAt, &b.Source.FireTime)
	case *runlane.RunDeliveryRequested:
		b.Delivery.Environment = e.Environment
		round(&b.Delivery.AvailableAt, &b.Delivery.RequestedAt, &b.Delivery.DispatchExpiresAt)
	case *runlane.RunLeaseClaimed:
		round(&b.Lease.ExpiresAt)
	case *runlane.RunLeaseHeartbeat:
		round(&b.Lease.ExpiresAt)
	case *runlane.RunRetryScheduled:
		round(&b.RetryAt)
	case *runlane.RunReleased:
		round(&b.ResumeAt)
	case *runlane.RunStarted, *runlane.RunSucceeded, *runlane.RunFailed, *runlane.RunCancellationRequested, *runlane.RunCancelled,
		*runlane.UnknownEvent: // no times
	}
	return e
}

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
