package dynamostore

import (
	"context"
	"math"
	"slices"

	"github.com/runlane/runlane-go"
)

// maxListParallel is how many requests of one list may be under way at once: with the usual number of shards, all that do not have
// to wait for one another. Somebody waits for the page, maybe far from the table.
const maxListParallel = 100

// readAhead fills a page in two rounds, where active runs are as evenly spread as ids are: first the markers, beside the number of
// shards where it is not known; then the runs of these markers, beside the finished runs where they may be needed. A list of finished
// runs alone needs one. Shards beyond the usual number are another round, once a minute in a process.
func (s *Store) readAhead(ctx context.Context, l *listing, at listPosition) error {
	shards, known := s.cachedShards(l.Environment)
	if !known {
		shards = shardCounts{Write: defaultShards, Read: defaultShards}
	}
	for part := at.Part; part < listParts; part++ {
		if l.wants(part) {
			after := indexPosition{}
			if part == at.Part {
				after = at.At
			}
			l.walks[part] = s.listWalk(l, part, shards, after)
		}
	}
	first := l.activeReads()
	if len(first) == 0 && l.walks[finishedRuns] != nil {
		first = l.walks[finishedRuns].reads()
	}
	if !known {
		first = append(first, func(ctx context.Context) (err error) {
			shards, err = s.shardCounts(ctx, l.Environment)
			return err
		})
	}
	if err := AllOf(ctx, maxListParallel, first); err != nil {
		return err
	}
	ready := l.readyRuns()
	for part, walk := range l.walks {
		if walk != nil {
			walk.add(l.span(part, shards).partitions)
		}
	}
	second := l.activeReads()
	if l.walks[finishedRuns] != nil && len(ready) < l.limit {
		second = append(second, l.walks[finishedRuns].reads()...)
	}
	if len(ready) > 0 {
		second = append(second, func(ctx context.Context) error { return s.know(ctx, l, ready) })
	}
	return AllOf(ctx, maxListParallel, second)
}

// listWalk is a part of the list. Runs are spread over the shards by their ids: that one shard holds more of a page than is read of
// it at first, and is read again, happens on one page in a hundred thousand. But active runs whose time is the same millisecond come
// shard by shard, and those that wait for a slot lie together: of these, which are small, a usual page is read of every shard.
func (s *Store) listWalk(l *listing, part int, shards shardCounts, after indexPosition) *indexWalk {
	rows := float64(l.atLeast(0))
	share := rows / float64(min(shards.Read, defaultShards))
	chunk := share + 5*math.Sqrt(share)
	if part != finishedRuns {
		chunk = max(chunk, runlane.DefaultPageLimit)
	}
	walk := &indexWalk{table: s.db, operation: "list runs", span: l.span(part, shards), after: after, atOnce: maxListParallel}
	walk.chunk, walk.batch = int(math.Ceil(min(chunk, rows))), min(l.atLeast(0), BatchKeys)
	walk.add(walk.span.partitions)
	return walk
}

// atLeast is how many rows are looked at beside those that were taken already: a filter may let few of them through.
func (l *listing) atLeast(taken int) int { return max(l.limit-taken, minBatch) }

func (l *listing) activeReads() (reads []func(context.Context) error) {
	for _, walk := range l.walks[:finishedRuns] {
		if walk != nil {
			reads = append(reads, walk.reads()...)
		}
	}
	return reads
}

// readyRuns are the active runs that come next on this page, as far as the markers are read.
func (l *listing) readyRuns() (ids []runlane.RunID) {
	for _, walk := range l.walks[:finishedRuns] {
		if walk == nil {
			continue
		}
		for _, row := range walk.ready(l.atLeast(len(ids))) {
			if id := l.runOf(row); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// know reads those runs that were not read for this page yet.
func (s *Store) know(ctx context.Context, l *listing, ids []runlane.RunID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id runlane.RunID) bool {
		_, known := l.known[id]
		return known || id == ""
	})
	parts := slices.Collect(slices.Chunk(ids, BatchKeys))
	read := make([]map[runlane.RunID]*runItem, len(parts))
	err := InParallel(ctx, parts, func(ctx context.Context, i int, part []runlane.RunID) (err error) {
		read[i], err = s.readRuns(ctx, l.Environment, part)
		return err
	})
	for i, part := range parts {
		for _, id := range part {
			l.known[id] = read[i][id]
		}
	}
	return err
}
