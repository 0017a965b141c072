package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// maxScanRows bounds the rows whose runs one page reads. The bound reached is a page with a cursor.
	maxScanRows = 2000
	// maxScanKeys bounds the rows that one page drops by their key alone, which costs next to nothing.
	maxScanKeys = 50_000
	// maxScanChunk is how many rows of a shard are read at once where all of the last ones were dropped by their key.
	maxScanChunk = 1000
)

// dueRow is an entry of the index due.
type dueRow struct {
	run    runlane.RunID
	key    dueKey
	marker marker
	queue  runlane.QueueName
}

// found is a row whose run was read and looked at.
type found struct {
	row   dueRow
	run   *runItem
	sight sight
}

// examine pages through the rows of the kinds in due order; judge reads their runs and leaves those it wants with their run set.
// Rows of queues that are not kept are dropped from the key alone.
func (s *Store) examine(
	ctx context.Context, q *lane.DueQuery, what string, kinds []kindBound, keep func(runlane.QueueName) bool,
	judge func([]dueRow) ([]found, error),
) (*runlane.Page[found], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, what)
	var after indexPosition
	if err := openCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	shards, err := s.shardCounts(ctx, q.Environment)
	if err != nil {
		return nil, err
	}
	due := dueSpan()
	for _, bound := range kinds {
		for shard := range shards.Read {
			due.partitions = append(due.partitions, bound.partitions(q, shard)...)
		}
	}
	page := &runlane.Page[found]{}
	walk := s.db.NewWalk("scan", due, after, chunkOf(limit))
	read := 0
	_, stopped, more, err := walk.show(ctx, maxScanKeys, func(rows []indexRow) (int, bool, error) {
		rows = rows[:min(len(rows), max(limit-len(page.Items), minBatch))]
		var kept []dueRow
		var behind []int // for each, how many rows are taken with it
		for i, it := range rows {
			if row, ok := parseDueRow(it.item); ok && keep(row.queue) {
				kept, behind = append(kept, row), append(behind, i+1)
			}
		}
		if len(kept) == 0 {
			walk.chunk = min(2*walk.chunk, maxScanChunk)
			return len(rows), false, nil
		}
		read += len(kept)
		seen, err := judge(kept)
		if err != nil {
			return 0, false, err
		}
		for i, f := range seen {
			if f.run == nil {
				continue
			}
			page.Items = append(page.Items, f)
			if len(page.Items) == limit {
				return behind[i], true, nil
			}
		}
		return len(rows), read >= maxScanRows, nil
	})
	if err != nil {
		return nil, err
	}
	if more {
		page.Next = sealCursor(scope, stopped)
	}
	return page, nil
}

func dueSpan() *span { return &span{Index: indexes[0], sk: skRun} }

// lastKey is the last sort key of a moment.
func (m millis) lastKey() string { return fmt.Sprintf("%013d:%s", m, beyondKeys) }

func scanScope(q *lane.DueQuery, what string) string {
	return fmt.Sprint(what, " ", q.Environment.Name(), " ", q.At.UnixMilli(), " ", q.Queues, " ", q.Without, " ", boundedNames(q.Bounded))
}

func boundedNames(queues []runlane.Queue) []runlane.QueueName {
	var names []runlane.QueueName
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// kindBound asks for the markers of a kind up to a moment. Those that wait for a slot have no moment, but the order of their queues:
// of them it asks for all but the bounded queues', which nobody should have to read past.
type kindBound struct {
	kind  markerKind
	until millis
}

// dueBound asks for what is due of a kind and not surely in somebody's hands: patience leaves the markers of deliveries alone that were
// queued or begun within it, and there are as many of them as that were.
func dueBound(kind markerKind, at millis, p lane.Patience) kindBound {
	if kind == deliverable {
		at -= millis(p.Queued / time.Millisecond)
	}
	return kindBound{kind, at}
}

func (b kindBound) partitions(q *lane.DueQuery, shard int) (parts []partition) {
	name := duePartition(q.Environment, b.kind, shard)
	if b.kind != slotless {
		return []partition{{name, beforeKeys, b.until.lastKey()}}
	}
	var queues []string
	for _, queue := range q.Bounded {
		queues = append(queues, string(queue.Name)+":")
	}
	slices.Sort(queues)
	from := beforeKeys
	for _, queue := range queues {
		parts = append(parts, partition{name, from, queue})
		from = queue + "~"
	}
	return append(parts, partition{name, from, beyondKeys})
}

// unbounded keeps the queues that a query asks for, but for bounded ones.
func unbounded(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return q.Wants(queue) && !isBounded(q.Bounded, queue) }
}

func isBounded(queues []runlane.Queue, name runlane.QueueName) bool {
	return slices.ContainsFunc(queues, func(q runlane.Queue) bool { return q.Name == name })
}

func parseDueRow(it item) (dueRow, bool) {
	row := dueRow{key: dueKey{textOf(it[attrDueP]), textOf(it[attrDueA])}}
	key, ok1 := parseRunPK(textOf(it[attrPK]))
	m, queue, ok2 := row.key.parse()
	row.run, row.marker, row.queue = key.RunID, m, queue
	return row, ok1 && ok2
}
