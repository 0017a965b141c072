package sqlitelane

import (
	"cmp"
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
			if err != nil || has || c.Queue.Concurrency == 0 {
				return err
			}
			return t.judgeRoom(e.partition(), c.Queue.Concurrency, todo, embedded.LostRace(lane.LostCapacity))
		},
	}))
}

// ReleaseRunDispatch frees a reserved slot.
func (s *Storage) ReleaseRunDispatch(
	ctx context.Context, c *lane.ReleaseDispatchCommand,
) (released bool, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return false, err
	}
	err = s.write(ctx, func(t *tx) error {
		e, err := s.readRun(t.Conn, c.Environment, c.RunID)
		until := embedded.At(c.ExpiresAt)
		if err != nil || e == nil || !e.known().Reserved(until) {
			return err
		}
		held, err := t.Number("SELECT count(*) FROM slots WHERE run = ? AND until = ?", e.n, int64(until))
		released = held > 0
		return cmp.Or(err, t.Exec("DELETE FROM slots WHERE run = ? AND until = ?", e.n, int64(until)))
	})
	return released && err == nil, err
}
