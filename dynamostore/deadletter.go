package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ListDeadLetters implements lane.Storage. The markers of dead letters are the list.
func (s *Store) ListDeadLetters(ctx context.Context, q *lane.DeadLetterQuery) (*runlane.Page[runlane.DeadLetter], error) {
	due := &lane.DueQuery{PageQuery: q.PageQuery}
	if q.Queue != "" {
		due.Queues = []runlane.QueueName{q.Queue}
	}
	rows := map[runlane.RunID]*delivery{}
	page, err := s.examine(ctx, due, "dead letters", []kindBound{{deadLetter, farFuture}}, due.Wants, func(batch []dueRow) ([]found, error) {
		seen, err := s.readRows(ctx, q.Environment, batch)
		if err != nil {
			return nil, err
		}
		var needed []*runItem
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
			row := deliveries[seen[i].row.run]
			if row == nil || row.status() != lane.OutboxDeadLettered {
				seen[i].run = nil
				continue
			}
			rows[seen[i].row.run] = row
		}
		return seen, err
	})
	if err != nil {
		return nil, err
	}
	letters := &runlane.Page[runlane.DeadLetter]{Next: page.Next}
	for _, f := range page.Items {
		row := rows[f.row.run]
		m := row.message(f.run.key(), runlane.QueueName(f.run.Queue), f.run.deliveryID())
		letters.Items = append(letters.Items, runlane.DeadLetter{
			RunID: m.Wakeup.RunID, OutboxID: m.ID, Queue: m.Wakeup.Queue, Attempts: m.Attempts, Failure: m.Failure, Since: row.DeadAt.time(),
		})
	}
	return letters, nil
}

// RequeueDeadLetters implements lane.Storage: row first, then the marker.
func (s *Store) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (requeued int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, s.db.Failure(ctx, "requeue", err)
	}
	for _, id := range c.IDs {
		run, first, index, ok := parseOutboxID(id)
		if !ok {
			continue
		}
		at := rowRef{lane.RunKey{Environment: c.Environment, RunID: run}, first, index}
		r, err := s.readRun(ctx, at.key)
		if err != nil {
			return requeued, err
		}
		if r == nil || r.deliveryID() != id {
			continue
		}
		row, err := s.updateRow(ctx, "requeue", at, at.requeue(randomID(), toMillis(c.At)))
		if err != nil {
			return requeued, err
		}
		if row == nil {
			continue
		}
		requeued++
		if err := s.moveMarker(ctx, r, marker{unpublished, toMillis(c.At)}); err != nil {
			return requeued, err
		}
	}
	return requeued, nil
}
