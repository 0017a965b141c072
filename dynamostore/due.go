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
//	nothing to do yet          gets a marker at the time of the next work, so that later scans skip it until then
func (s *Store) scan(ctx context.Context, q *lane.DueQuery, wanted rows.Stage) (*runlane.Page[found], error) {
	at := rows.ToMillis(q.At)
	var kinds []kindBound
	for _, kind := range rows.ScanKinds[wanted] {
		kinds = append(kinds, dueBound(kind, at, q.Patience))
	}
	keep := unbounded(q)
	if wanted == rows.Finalizing || wanted == rows.Telling {
		keep = q.Wants // a cancellation has nothing to do with slots, nor has an end
	}
	return s.examine(ctx, q, fmt.Sprint("due ", wanted), kinds, keep, func(rows []rows.DueRow) ([]found, error) {
		seen, err := s.inspect(ctx, q, rows, at)
		if err != nil {
			return nil, err
		}
		if err := s.leaveMarkers(ctx, seen, wanted, at); err != nil {
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

// leaveMarkers moves the markers that classification replaces. Each move is a plain write that depends on its own run
// alone, so they are sent in parallel: one after the other, a backlog of runs with nothing to do would delay the runs
// behind it.
func (s *Store) leaveMarkers(ctx context.Context, seen []found, wanted rows.Stage, at rows.Millis) error {
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

// ListRunsNeedingRedelivery implements lane.Storage. Runs that waited for a slot need a wakeup too once their queue has
// no limit any more: they have none.
func (s *Store) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Redelivering)
}

// ListRunsNeedingCancellationFinalization implements lane.Storage.
func (s *Store) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Finalizing)
}

// timedKinds are the markers that stand for a moment.
var timedKinds = []rows.MarkerKind{
	rows.Deliverable, rows.Unpublished, rows.Waiting, rows.Parked, rows.Leased, rows.Ended,
}

// OldestDue is the time since which the oldest marker has been due at an instant; zero when none is due. It reads the
// index alone, changes nothing and inspects no run: until a tick moves it, a marker may be earlier than the run's next
// work (docs/internals/layout.md, Indexes). Where ticks keep up, no marker stays due for longer than the time between
// two ticks and their grace period.
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
