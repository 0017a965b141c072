package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// scan reads the due markers, oldest first over all shards, and classifies their runs:
//
//	Finding                    Row
//	work for the wanted stage  returned
//	work for another stage     left to that stage
//	nothing to do yet          its marker moves to the time of the next work, so that scans skip it until then
func (s *Store) scan(ctx context.Context, q *lane.DueQuery, wanted rows.Stage) (*runlane.Page[found], error) {
	at := rows.ToMillis(q.At)
	var kinds []kindBound
	for _, kind := range rows.ScanKinds[wanted] {
		kinds = append(kinds, dueBound(kind, at, q.Patience))
	}
	keep := unbounded(q)
	if wanted == rows.Finalizing || wanted == rows.Notifying {
		keep = q.Wants // cancellations and ends need no slots
	}
	return s.examine(ctx, q, fmt.Sprint("due ", wanted), kinds, keep, func(due []rows.DueRow) ([]found, error) {
		seen, err := s.inspect(ctx, q, due, at)
		if err != nil {
			return nil, err
		}
		if err := s.replaceMarkers(ctx, seen, wanted, at); err != nil {
			return nil, err
		}
		for i := range seen {
			if !seen[i].finding.Concerns(wanted) {
				seen[i].run = nil
			}
		}
		return seen, nil
	})
}

// replaceMarkers moves the markers that classification replaces, in parallel: one by one, a backlog of runs with
// nothing to do would delay the others.
func (s *Store) replaceMarkers(ctx context.Context, seen []found, wanted rows.Stage, at rows.Millis) error {
	var leaving []markerMove
	for _, f := range seen {
		if to, moves := rows.NextMarker(f.run, f.finding, wanted, at); moves {
			leaving = append(leaving, markerMove{f.run, to})
		}
	}
	return s.moveMarkers(ctx, leaving)
}

func (s *Store) scanRefs(ctx context.Context, q *lane.DueQuery, wanted rows.Stage) (*runlane.Page[lane.RunRef], error) {
	page, err := s.scan(ctx, q, wanted)
	if err != nil {
		return nil, err
	}
	return refs(page), nil
}

// ListRunsNeedingDelivery implements lane.Storage.
func (s *Store) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Delivering)
}

// ListRunsNeedingRedelivery implements lane.Storage. It includes slotless runs of a queue that lost its limit: they
// never had a wakeup.
func (s *Store) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Redelivering)
}

// ListRunsNeedingCancellationFinalization implements lane.Storage.
func (s *Store) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Finalizing)
}

var timedKinds = []rows.MarkerKind{
	rows.Deliverable, rows.Unpublished, rows.Waiting, rows.Parked, rows.Leased, rows.Ended,
}

// OldestDue is the time of the oldest marker due at an instant, or zero. It reads only the index. A marker may be
// earlier than its run's next work until a tick moves it (docs/internals/layout.md, Indexes). If ticks keep up, no
// marker is due for longer than the time between two ticks plus their patience.
func (s *Store) OldestDue(ctx context.Context, environment runlane.Environment, at time.Time) (time.Time, error) {
	shards, err := s.shardCounts(ctx, environment)
	if err != nil {
		return time.Time{}, err
	}
	due := dueSpan()
	for _, kind := range timedKinds {
		for shard := range shards.Read {
			due.Partitions = append(due.Partitions, ddb.Partition{
				Name:  rows.DuePartition(environment, kind, shard),
				From:  item.BeforeKeys,
				Until: rows.ToMillis(at).LastKey(),
			})
		}
	}
	var oldest time.Time
	_, _, _, err = s.db.Walk(ctx, "oldest due", due, ddb.Position{}, 1, 1, func(entries []ddb.Row) (int, bool, error) {
		if row, ok := rows.ParseDueRow(entries[0].Item); ok {
			oldest = row.Marker.At.Time()
		}
		return 1, true, nil
	})
	return oldest, s.db.Failure(ctx, "oldest due", err)
}
