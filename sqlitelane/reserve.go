package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ReserveRunDispatch takes a slot for a run and requests its delivery.
func (s *Storage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return acquisition(s.commit(ctx, &c.Transition, c.Outbox, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			p, last := c.Projected, c.Events[len(c.Events)-1]
			if e == nil || last.Type() != runlane.EventDeliveryRequested || p.Status != runlane.StatusQueued ||
				!c.Reserves() {
				return embedded.Violation(p.ID, "a reservation is a run.delivery_requested of an existing run, for now "+
					"and with the reservation's end")
			}
			todo.now = embedded.At(c.At)
			if since, ok := e.DispatchableSince(); !ok || since > todo.now {
				return lostRace(lane.LostEligibility)
			}
			has, err := occupies(t.Conn, e, todo.now)
			if err != nil || has {
				return err
			}
			return t.judgeRoom(e.partition(), c.Queue.Concurrency, todo, lostRace(lane.LostCapacity))
		},
	}))
}
