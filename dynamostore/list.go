package dynamostore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// The parts of a list of runs, in order.
const (
	timedRuns    = iota // active runs, by the time of their next inspection
	slotlessRuns        // active runs that wait for a slot, by partition
	finishedRuns        // newest first
	listParts
)

type listPosition struct {
	Part int          `json:"n"`
	At   ddb.Position `json:"a"`
}

type listing struct {
	*lane.RunQuery
	limit    int
	examined int
	items    []runlane.RunSummary

	walks [listParts]*ddb.Walking     // nil: not wanted, or before the position
	known map[runlane.RunID]*rows.Run // runs read so far; nil for a missing run
}

// ListRuns implements lane.Storage. Active runs are found by their markers and read strongly; finished runs are listed
// from the index.
func (s *Store) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := q.Scope()
	var at listPosition
	if err := rows.OpenCursor(q.After, scope, &at); err != nil {
		return nil, err
	}
	l := &listing{RunQuery: q, limit: limit, known: map[runlane.RunID]*rows.Run{}}
	if err := s.readAhead(ctx, l, at); err != nil {
		return nil, err
	}
	for part, walk := range l.walks {
		if walk == nil {
			continue
		}
		if len(l.items) == limit || l.examined == maxListRows {
			return l.page(rows.SealCursor(scope, listPosition{Part: part})), nil
		}
		examined, stopped, more, err := walk.Show(ctx, maxListRows-l.examined, func(rows []ddb.Row) (int, bool, error) {
			if part == finishedRuns {
				return l.takeFinished(rows)
			}
			return s.listActive(ctx, l, rows)
		})
		if err != nil {
			return nil, err
		}
		if more {
			return l.page(rows.SealCursor(scope, listPosition{part, stopped})), nil
		}
		l.examined += examined
	}
	return l.page(""), nil
}

func (l *listing) page(next runlane.Cursor) *runlane.Page[runlane.RunSummary] {
	return &runlane.Page[runlane.RunSummary]{Items: l.items, Next: next}
}

func (l *listing) wants(part int) bool {
	if l.Waiting != "" && part == finishedRuns {
		return false
	}
	return len(l.Statuses) == 0 || slices.ContainsFunc(l.Statuses, func(status runlane.Status) bool {
		switch part {
		case finishedRuns:
			return status.Terminal()
		case slotlessRuns: // running and cancelled runs have a time
			return status.Active() && !status.Owned()
		default:
			return status.Active()
		}
	})
}

func (l *listing) span(part int, shards rows.Shards) *ddb.Span {
	if part == finishedRuns {
		statuses := slices.DeleteFunc(terminalStatuses(), func(status runlane.Status) bool {
			return len(l.Statuses) > 0 && !slices.Contains(l.Statuses, status)
		})
		newestFirst := doneSpan(l.Environment, statuses, shards, item.BeyondKeys)
		newestFirst.Backwards = true
		if !l.Since.IsZero() {
			for i := range newestFirst.Partitions {
				newestFirst.Partitions[i].From = fmt.Sprintf("%013d", rows.ToMillis(l.Since))
			}
		}
		return newestFirst
	}
	kinds := []rows.MarkerKind{
		rows.Deliverable, rows.Unpublished, rows.DeadLetter, rows.Waiting, rows.Parked, rows.Leased,
	}
	if part == slotlessRuns {
		kinds = []rows.MarkerKind{rows.Slotless}
	}
	sp := dueSpan()
	for _, kind := range kinds {
		for shard := range shards.Read {
			sp.Partitions = append(sp.Partitions, ddb.Partition{
				Name: rows.DuePartition(l.Environment, kind, shard), From: item.BeforeKeys, Until: item.BeyondKeys,
			})
		}
	}
	return sp
}

func terminalStatuses() []runlane.Status {
	return slices.Sorted(slices.Values(slices.DeleteFunc(runlane.Statuses(), runlane.Status.Active)))
}

func (l *listing) take(r runlane.RunSummary) (enough bool) {
	if l.Matches(&r) {
		l.items = append(l.items, r)
	}
	return len(l.items) == l.limit
}

// listActive lists the runs of markers. It skips rows of other queues by their key, and stale rows: the run is missing,
// finished or has another marker.
func (s *Store) listActive(ctx context.Context, l *listing, entries []ddb.Row) (taken int, enough bool, err error) {
	entries = entries[:min(len(entries), l.atLeast(len(l.items)))]
	ids := make([]runlane.RunID, len(entries))
	for i, row := range entries {
		ids[i] = l.runOf(row)
	}
	if err := s.readRunsOnce(ctx, l, ids); err != nil {
		return 0, false, err
	}
	for i, row := range entries {
		r := l.known[ids[i]]
		if r != nil && r.Due() == (rows.DueKey{Partition: row.Partition, Sort: row.Sort}) &&
			l.take(r.Projection().Summary()) {
			return i + 1, true, nil
		}
	}
	return len(entries), false, nil
}

func (l *listing) runOf(row ddb.Row) runlane.RunID {
	if due, ok := rows.ParseDueRow(row.Item); ok && (l.Queue == "" || l.Queue == due.Queue) {
		return due.Run
	}
	return ""
}

func (l *listing) takeFinished(entries []ddb.Row) (taken int, enough bool, err error) {
	for i, row := range entries {
		r, err := rows.UnmarshalRun(row.Item)
		if err != nil {
			return i, false, err
		}
		r.Status = strings.Split(row.Partition, ":")[1]
		finished, _, _ := strings.Cut(row.Sort, ":")
		r.FinishedAt = rows.ParseMillis(finished)
		if l.take(r.Projection().Summary()) {
			return i + 1, true, nil
		}
	}
	return len(entries), false, nil
}

// maxListParallel covers all independent requests of a list with the usual number of shards. A user waits for the page,
// maybe far from the table.
const maxListParallel = 100

// readAhead fills a page in two rounds if the IDs of active runs are spread evenly: the markers, with the number of
// shards if unknown; then their runs, with the finished runs if the page may need them. A list of finished runs alone
// needs one round. More shards than usual need another round, once a minute.
func (s *Store) readAhead(ctx context.Context, l *listing, at listPosition) error {
	shards, known := s.knownShards(l.Environment)
	if !known {
		shards = rows.Shards{Write: rows.DefaultShards, Read: rows.DefaultShards}
	}
	for part := at.Part; part < listParts; part++ {
		if l.wants(part) {
			after := ddb.Position{}
			if part == at.Part {
				after = at.At
			}
			l.walks[part] = s.listWalk(l, part, shards, after)
		}
	}
	first := l.activeReads()
	if len(first) == 0 && l.walks[finishedRuns] != nil {
		first = l.walks[finishedRuns].Reads()
	}
	if !known {
		first = append(first, func(ctx context.Context) (err error) {
			shards, err = s.shardCounts(ctx, l.Environment)
			return err
		})
	}
	if err := ddb.AllOf(ctx, maxListParallel, first); err != nil {
		return err
	}
	ready := l.readyRuns()
	for part, walk := range l.walks {
		if walk != nil {
			walk.Add(l.span(part, shards).Partitions)
		}
	}
	second := l.activeReads()
	if l.walks[finishedRuns] != nil && len(ready) < l.limit {
		second = append(second, l.walks[finishedRuns].Reads()...)
	}
	if len(ready) > 0 {
		second = append(second, func(ctx context.Context) error { return s.readRunsOnce(ctx, l, ready) })
	}
	return ddb.AllOf(ctx, maxListParallel, second)
}

// listWalk reads a part of the list. About one page in a hundred thousand needs a second read because one shard has
// more of its runs than the first read covers. But active runs of one millisecond come shard by shard, and slotless
// runs are grouped: of these small rows each shard reads a usual page.
func (s *Store) listWalk(l *listing, part int, shards rows.Shards, after ddb.Position) *ddb.Walking {
	entries := float64(l.atLeast(0))
	share := entries / float64(min(shards.Read, rows.DefaultShards))
	chunk := share + 5*math.Sqrt(share)
	if part != finishedRuns {
		chunk = max(chunk, runlane.DefaultPageLimit)
	}
	walk := &ddb.Walking{
		Table:     s.db,
		Operation: "list runs",
		Span:      l.span(part, shards),
		After:     after,
		AtOnce:    maxListParallel,
	}
	walk.Chunk, walk.Batch = int(math.Ceil(min(chunk, entries))), min(l.atLeast(0), ddb.BatchKeys)
	walk.Add(walk.Span.Partitions)
	return walk
}

// atLeast is how many rows to read after those already taken: a filter may pass few of them.
func (l *listing) atLeast(taken int) int { return max(l.limit-taken, minBatch) }

func (l *listing) activeReads() (reads []func(context.Context) error) {
	for _, walk := range l.walks[:finishedRuns] {
		if walk != nil {
			reads = append(reads, walk.Reads()...)
		}
	}
	return reads
}

func (l *listing) readyRuns() (ids []runlane.RunID) {
	for _, walk := range l.walks[:finishedRuns] {
		if walk == nil {
			continue
		}
		for _, row := range walk.Ready(l.atLeast(len(ids))) {
			if id := l.runOf(row); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (s *Store) readRunsOnce(ctx context.Context, l *listing, ids []runlane.RunID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id runlane.RunID) bool {
		_, known := l.known[id]
		return known || id == ""
	})
	parts := slices.Collect(slices.Chunk(ids, ddb.BatchKeys))
	read := make([]map[runlane.RunID]*rows.Run, len(parts))
	err := ddb.InParallel(ctx, parts, func(ctx context.Context, i int, part []runlane.RunID) (err error) {
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
