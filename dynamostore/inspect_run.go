package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// InspectRun implements lane.Storage.
func (s *Store) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	run, current, err := s.readWhole(ctx, q.RunKey)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, rows.NotFound(q.RunKey)
	}
	inspection := &lane.Inspection{Run: run}
	if q.Queue.Concurrency > 0 {
		taken, err := s.slots(ctx, current.Partition())
		if err != nil {
			return nil, err
		}
		for _, slot := range taken {
			inspection.Holders = append(inspection.Holders, slot.Run)
		}
	}
	if q.Queue.Rated() {
		if inspection.Pace, err = s.readPace(ctx, current.Partition()); err != nil {
			return nil, err
		}
	}
	if current.DeliveryLog == 0 {
		return inspection, nil
	}
	row, err := s.readDelivery(ctx, q.RunKey, current.DeliveryLog, current.DeliveryIndex)
	if err != nil || row == nil {
		return inspection, err
	}
	m := row.Message(q.RunKey, run.Queue, current.DeliveryID())
	inspection.Delivery = &m
	if row.State() == lane.OutboxPublished && run.Status == runlane.StatusQueued {
		inspection.RedeliverAt = row.RedeliverAt().Time()
	}
	return inspection, nil
}
