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

// scan reads the markers that are due, oldest first over all shards, and looks at their runs. Rows of the wanted stage are
// returned; a row at which nobody has anything to do gets the marker of the moment when somebody will, so that no scan reads it
// for ever; rows of other stages are theirs.
func (s *Store) scan(ctx context.Context, q *lane.DueQuery, wanted rows.Stage) (*runlane.Page[found], error) {
	at := rows.ToMillis(q.At)
	var kinds []kindBound
	for _, kind := range rows.ScanKinds[wanted] {
		kinds = append(kinds, dueBound(kind, at, q.Patience))
	}
	keep := unbounded(q)
	if wanted == rows.Finalizing {
		keep = q.Wants // a cancellation has nothing to do with slots
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

// leaveMarkers moves what a look leaves with another marker. Each move is a plain write that depends on its own run alone, so they go
// at once: one after the other, a backlog at which nobody has anything to do would take the time of what lies behind it.
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

// ListRunsNeedingRedelivery implements lane.Storage. Runs that waited for a slot in a queue that has no limit any more need a
// wakeup too: they have none.
func (s *Store) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Redelivering)
}

// ListRunsNeedingCancellationFinalization implements lane.Storage.
func (s *Store) ListRunsNeedingCancellationFinalization(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Finalizing)
}

// timedKinds are the markers that stand for a moment.
var timedKinds = []rows.MarkerKind{rows.Deliverable, rows.Unpublished, rows.Waiting, rows.Parked, rows.Leased}

// OldestDue is since when the oldest marker has been due at an instant; zero when none is. It reads the index alone, changes nothing
// and looks at no run: a marker may be older than what is really due (docs/internals/layout.md, Indexes), until a tick moves it. Where ticks
// keep up, no marker stays due for longer than a tick's distance and its patience.
func (s *Store) OldestDue(ctx context.Context, environment runlane.Environment, at time.Time) (time.Time, error) {
	shards, err := s.shardCounts(ctx, environment)
	if err != nil {
		return time.Time{}, err
	}
	due := dueSpan()
	for _, kind := range timedKinds {
		for shard := range shards.Read {
			due.Partitions = append(due.Partitions, ddb.Partition{
				Name: rows.DuePartition(environment, kind, shard), From: item.BeforeKeys, Until: rows.ToMillis(at).LastKey(),
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
