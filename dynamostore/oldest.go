package dynamostore

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

// timedKinds are the markers that stand for a moment.
var timedKinds = []markerKind{deliverable, unpublished, waiting, parked, leased}

// OldestDue is since when the oldest marker has been due at an instant; zero when none is. It reads the index alone, changes nothing
// and looks at no run: a marker may be older than what is really due (docs/layout.md, Indexes), until a tick moves it. Where ticks
// keep up, no marker stays due for longer than a tick's distance and its patience.
func (s *Store) OldestDue(ctx context.Context, environment runlane.Environment, at time.Time) (time.Time, error) {
	shards, err := s.shardCounts(ctx, environment)
	if err != nil {
		return time.Time{}, err
	}
	due := dueSpan()
	for _, kind := range timedKinds {
		for shard := range shards.Read {
			due.partitions = append(due.partitions, partition{duePartition(environment, kind, shard), beforeKeys, toMillis(at).lastKey()})
		}
	}
	var oldest time.Time
	_, _, _, err = s.db.Walk(ctx, "oldest due", due, indexPosition{}, 1, 1, func(rows []indexRow) (int, bool, error) {
		if row, ok := parseDueRow(rows[0].item); ok {
			oldest = row.marker.at.time()
		}
		return 1, true, nil
	})
	return oldest, s.db.Failure(ctx, "oldest due", err)
}
