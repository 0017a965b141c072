package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// moveMarker writes a marker if the run is as read. Otherwise it leaves the newer marker. The sequence never changes.
func (s *Store) moveMarker(ctx context.Context, r *rows.Run, to rows.Marker) error {
	shards, err := s.shardCounts(ctx, r.Key().Environment)
	if err != nil {
		return err
	}
	due := r.DueKey(to, shards)
	if due == r.Due() {
		return nil
	}
	return s.moveMarkerFrom(ctx, r.PK, r.Sequence, r.Due(), due, r.Raw)
}

type markerMove struct {
	run *rows.Run
	to  rows.Marker
}

func (s *Store) moveMarkers(ctx context.Context, moves []markerMove) error {
	return ddb.InParallel(ctx, moves, func(ctx context.Context, _ int, m markerMove) error {
		return s.moveMarker(ctx, m.run, m.to)
	})
}

func (s *Store) moveMarkerFrom(
	ctx context.Context, pk string, sequence int64, from, to rows.DueKey, before item.Item,
) error {
	after, ok, err := s.db.Update(ctx, "move marker", rows.MarkerUpdate(pk, sequence, from, to, before))
	if err == nil && ok {
		s.spans.wrote(to)
		if r, err := rows.UnmarshalRun(after); err == nil {
			s.snapshots.put(r.PK, r)
		}
	}
	return err
}
