package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

type eventPosition struct {
	Sequence int64 `json:"s"`
}

// ListRunEvents implements lane.Storage.
func (s *Store) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	if err := q.RunID.Validate(); err != nil {
		return nil, err
	}
	key := lane.RunKey{Environment: q.Environment, RunID: q.RunID}
	scope := fmt.Sprintf("events %s %s %t", key.Environment.Name(), key.RunID, q.Descending)
	var after eventPosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	current, err := s.readRun(ctx, key)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, rows.NotFound(key)
	}
	records, err := s.eventsFrom(ctx, current, after.Sequence, q.Descending, limit+1)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[runlane.EventRecord]{Items: records}
	if len(records) > limit {
		page.Items = records[:limit]
		page.Next = rows.SealCursor(scope, eventPosition{page.Items[limit-1].Sequence})
	}
	return page, s.fillBodies(ctx, current, page.Items)
}

// eventsFrom reads n events after the position, starting at the newest commit that can contain it.
func (s *Store) eventsFrom(
	ctx context.Context, r *rows.Run, after int64, descending bool, n int,
) ([]runlane.EventRecord, error) {
	key := r.Key()
	low, high := rows.LogPrefix, rows.LogPrefix+"~"
	if after > 0 && descending {
		high = rows.LogSK(after)
	} else if after > 0 {
		low = rows.LogSK(max(after-lane.MaxCommitEvents, 0))
	}
	var records []runlane.EventRecord
	err := s.db.Query(ctx, &ddb.Query{
		Operation: "list events",
		Where:     "#pk = :pk AND #sk BETWEEN :low AND :high",
		Values:    item.Item{":pk": item.Text(r.PK), ":low": item.Text(low), ":high": item.Text(high)},
		Backwards: descending,
		Limit:     n + lane.MaxCommitEvents,
	}, func(raw item.Item) (more bool, err error) {
		var log rows.Log
		if err := rows.Unmarshal(raw, &log); err != nil {
			return false, err
		}
		first, err := log.First()
		if err != nil {
			return false, err
		}
		batch, err := log.Records(key, runlane.QueueName(r.Queue), first)
		if descending {
			slices.Reverse(batch)
		}
		for _, record := range batch {
			if after == 0 || descending && record.Sequence < after || !descending && record.Sequence > after {
				records = append(records, record)
			}
		}
		return len(records) < n, err
	})
	return records[:min(n, len(records))], err
}

// fillBodies restores payload and output in their events.
func (s *Store) fillBodies(ctx context.Context, r *rows.Run, records []runlane.EventRecord) (err error) {
	for _, record := range records {
		switch body := record.Body.(type) {
		case *runlane.RunCreated:
			body.Payload, err = s.bulk(ctx, r, r.PayloadPlace, r.Payload, rows.PayloadSK, nil)
			if errors.Is(err, errReplaced) {
				err = replaced(r.Key().RunID)
			}
		case *runlane.RunSucceeded:
			body.Output, err = s.bulk(ctx, r, r.OutputPlace, r.Output, rows.OutputSK, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
