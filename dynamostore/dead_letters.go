package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ListDeadLetters implements lane.Storage by the markers of dead letters.
func (s *Store) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	due := &lane.DueQuery{PageQuery: q.PageQuery}
	if q.Queue != "" {
		due.Queues = []runlane.QueueName{q.Queue}
	}
	entries := map[runlane.RunID]*rows.Delivery{}
	page, err := s.examine(
		ctx,
		due,
		"dead letters",
		[]kindBound{{rows.DeadLetter, rows.FarFuture}},
		due.Wants,
		func(batch []rows.DueRow) ([]found, error) {
			seen, err := s.readRows(ctx, q.Environment, batch)
			if err != nil {
				return nil, err
			}
			var needed []*rows.Run
			for _, f := range seen {
				if f.run != nil {
					needed = append(needed, f.run)
				}
			}
			deliveries, err := s.readDeliveries(ctx, needed)
			for i := range seen {
				if seen[i].run == nil {
					continue
				}
				row := deliveries[seen[i].row.Run]
				if row == nil || row.State() != lane.OutboxDeadLettered {
					seen[i].run = nil
					continue
				}
				entries[seen[i].row.Run] = row
			}
			return seen, err
		},
	)
	if err != nil {
		return nil, err
	}
	letters := &runlane.Page[runlane.DeadLetter]{Next: page.Next}
	for _, f := range page.Items {
		row := entries[f.row.Run]
		m := row.Message(f.run.Key(), runlane.QueueName(f.run.Queue), f.run.DeliveryID())
		letters.Items = append(letters.Items, runlane.DeadLetter{
			RunID:    m.Wakeup.RunID,
			OutboxID: m.ID,
			Queue:    m.Wakeup.Queue,
			Attempts: m.Attempts,
			Failure:  m.Failure,
			Since:    row.DeadAt.Time(),
		})
	}
	return letters, nil
}

// RequeueDeadLetters implements lane.Storage: the row first, then the marker.
func (s *Store) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (requeued int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, s.db.Failure(ctx, "requeue", err)
	}
	for _, id := range c.IDs {
		run, first, index, ok := rows.ParseOutboxID(id)
		if !ok {
			continue
		}
		at := rows.DeliveryRef{Key: lane.RunKey{Environment: c.Environment, RunID: run}, First: first, Index: index}
		r, err := s.readRun(ctx, at.Key)
		if err != nil {
			return requeued, err
		}
		if r == nil || r.DeliveryID() != id {
			continue
		}
		row, err := s.updateRow(ctx, "requeue", at, at.Requeue(randomID(), rows.ToMillis(c.At)))
		if err != nil {
			return requeued, err
		}
		if row == nil {
			continue
		}
		requeued++
		if err := s.moveMarker(ctx, r, rows.AfterRequeue(rows.ToMillis(c.At))); err != nil {
			return requeued, err
		}
	}
	return requeued, nil
}
