package memlane

import (
	"bytes"
	"maps"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// bodyRoom is preallocated memory for one body of each type in a simple run.
type bodyRoom struct {
	created   *runlane.RunCreated
	delivery  *runlane.RunDeliveryRequested
	claimed   *runlane.RunLeaseClaimed
	started   *runlane.RunStarted
	succeeded *runlane.RunSucceeded
}

// claimRoom returns the room once, then new memory.
func claimRoom[T any](room **T) *T {
	if t := *room; t != nil {
		*room = nil
		return t
	}
	return new(T)
}

// copyBody returns a deep copy with whole milliseconds.
func (room *bodyRoom) copyBody(body runlane.EventBody) runlane.EventBody {
	switch b := body.(type) {
	case *runlane.RunCreated:
		c := claimRoom(&room.created)
		*c = *b
		c.Payload = bytes.Clone(b.Payload)
		if c.Debounced = b.Debounced.Clone(); c.Debounced != nil {
			round(&c.Debounced.Latest)
		}
		round(&c.RunAt, &c.Source.FireTime, &c.Source.CreatedAt)
		return c
	case *runlane.RunDeliveryRequested:
		c := claimRoom(&room.delivery)
		*c = *b
		c.Delivery.TraceCarrier = maps.Clone(b.Delivery.TraceCarrier)
		c.Wait = b.Wait.AtRest()
		round(&c.Delivery.AvailableAt, &c.Delivery.RequestedAt, &c.Delivery.DispatchExpiresAt)
		return c
	case *runlane.RunLeaseClaimed:
		c := claimRoom(&room.claimed)
		*c = *b
		round(&c.Lease.ExpiresAt)
		return c
	case *runlane.RunStarted:
		c := claimRoom(&room.started)
		*c = *b
		return c
	case *runlane.RunSucceeded:
		c := claimRoom(&room.succeeded)
		*c = *b
		c.Output = bytes.Clone(b.Output)
		return c
	default:
		return runlane.Event{Body: body}.AtRest().Body
	}
}

func round(times ...*time.Time) {
	for _, t := range times {
		*t = embedded.At(*t).Time()
	}
}
