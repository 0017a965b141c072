package dynamostore

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// paceTries limits the writes of one start or ticket. Each failed one shows the pace as it is.
const paceTries = 4

// TakeTicket implements lane.Storage.
func (s *Store) TakeTicket(ctx context.Context, c *lane.TicketCommand) (start time.Time, ok bool, err error) {
	p := rows.Partition{Environment: c.Environment, Queue: c.Queue.Name, Hash: rows.Hash(c.ConcurrencyKey)}
	pace, ok, err := s.pace(ctx, "take ticket", p, func(seen lane.Pace) (*item.Update, bool) {
		return p.GiveTicket(seen, c.Queue, c.At, c.Until)
	})
	if !ok || err != nil {
		return time.Time{}, false, err
	}
	return rows.TicketStart(pace, c.Queue, c.At), true, nil
}

// start counts a start of a partition before the claim that starts. That claim may still fail; then the start is lost.
func (s *Store) start(ctx context.Context, p rows.Partition, q runlane.Queue, at time.Time) (lane.Pace, bool, error) {
	return s.pace(ctx, "count start", p, func(seen lane.Pace) (*item.Update, bool) { return p.CountStart(seen, q, at) })
}

// pace changes a pace. The last one seen by this process is never ahead of the stored one, so a change that it does
// not allow costs no request.
func (s *Store) pace(
	ctx context.Context, operation string, p rows.Partition, change func(seen lane.Pace) (*item.Update, bool),
) (pace lane.Pace, ok bool, err error) {
	pace, known := s.paces.get(p)
	if !known {
		if pace, err = s.readPace(ctx, p); err != nil {
			return pace, false, err
		}
	}
	for range paceTries {
		update, allowed := change(pace)
		if !allowed {
			return pace, false, nil
		}
		after, ok, err := s.db.Update(ctx, operation, update)
		if err != nil {
			return pace, false, err
		}
		pace = rows.PaceOf(after)
		s.paces.put(p, pace)
		if ok {
			return pace, true, nil
		}
	}
	return pace, false, nil
}

func (s *Store) readPace(ctx context.Context, p rows.Partition) (lane.Pace, error) {
	raw, err := s.db.Get(ctx, "read pace", p.PacePK(), rows.PaceSK)
	if err != nil {
		return lane.Pace{}, err
	}
	pace := rows.PaceOf(raw)
	s.paces.put(p, pace)
	return pace, nil
}

// paceRoom is how many runs of a partition may start now, or get a ticket.
func (d *dispatch) paceRoom(ctx context.Context, p rows.Partition, q runlane.Queue) (int, error) {
	count := func(pace lane.Pace) int {
		if d.polling {
			return pace.Starts(q, d.q.At)
		}
		return pace.Tickets(q, d.q.At, d.q.At.Add(lane.TicketsAhead))
	}
	if pace, known := d.store.paces.get(p); known && count(pace) == 0 {
		return 0, nil
	}
	pace, err := d.store.readPace(ctx, p)
	return count(pace), err
}
