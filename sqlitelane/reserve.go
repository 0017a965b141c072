package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ReserveRunDispatch takes a slot for a run and requests its delivery.
func (s *Storage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return acquisition(s.commit(ctx, &c.Transition, c.Outbox, judgment{
		eligibility: func(t *tx, e *entry, todo *plan) error {
			known := e.known()
			err := embedded.JudgeReservation(known, c, func() (embedded.Millis, bool) { return e.DispatchableSince(known) })
			if err != nil {
				return err
			}
			todo.now = embedded.At(c.At)
			has, err := occupies(t.Conn, e, todo.now)
			if err != nil || has {
				return err
			}
			return t.judgeRoom(e.partition(), c.Queue.Concurrency, todo, embedded.LostRace(lane.LostCapacity))
		},
	}))
}
