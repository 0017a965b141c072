package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// readRows reads the runs of rows strongly. The run is nil if it is missing, finished, has another marker, or a status
// unknown to this version.
func (s *Store) readRows(ctx context.Context, e runlane.Environment, due []rows.DueRow) ([]found, error) {
	ids := make([]runlane.RunID, len(due))
	for i, row := range due {
		ids[i] = row.Run
	}
	runs, err := s.readRuns(ctx, e, ids)
	out := make([]found, len(due))
	for i, row := range due {
		out[i].row = row
		if r := runs[row.Run]; r != nil && r.Due() == row.Key && r.State().Known() {
			out[i].run = r
		}
	}
	return out, err
}

// inspect reads and classifies the runs of rows. Stale runs, and runs left to other processes by patience, are nil.
func (s *Store) inspect(ctx context.Context, q *lane.DueQuery, due []rows.DueRow, at rows.Millis) ([]found, error) {
	seen, err := s.readRows(ctx, q.Environment, due)
	if err != nil {
		return nil, err
	}
	return seen, s.classify(ctx, q, seen, at)
}

func (s *Store) classify(ctx context.Context, q *lane.DueQuery, seen []found, at rows.Millis) error {
	var needed []*rows.Run
	for i := range seen {
		r := seen[i].run
		if r != nil && rows.Patient(r, at, q.Patience) {
			seen[i].run, r = nil, nil
		}
		if r != nil && r.DeliveryLog != 0 {
			needed = append(needed, r)
		}
	}
	deliveries, err := s.readDeliveries(ctx, needed)
	if err != nil {
		return err
	}
	for i := range seen {
		r := seen[i].run
		if r == nil {
			continue
		}
		row, bounded := deliveries[r.Key().RunID], isBounded(q.Bounded, runlane.QueueName(r.Queue))
		if !bounded && rows.HandedOver(r, row, at, q.Patience) {
			seen[i].run = nil
			continue
		}
		seen[i].finding = rows.Classify(r, row, at, bounded)
	}
	return nil
}

func (f found) ref() lane.RunRef {
	ref := lane.RunRef{
		RunKey:         f.run.Key(),
		Queue:          runlane.QueueName(f.run.Queue),
		ConcurrencyKey: f.run.ConcurrencyKey,
		Status:         f.run.State(),
		AvailableAt:    f.finding.Since.Time(),
		Sequence:       f.run.Sequence,
	}
	if f.finding.Stage == rows.Delivering {
		ref.OutboxID = f.finding.Outbox
	}
	return ref
}

func refs(page *runlane.Page[found]) *runlane.Page[lane.RunRef] {
	out := &runlane.Page[lane.RunRef]{Next: page.Next}
	for _, f := range page.Items {
		out.Items = append(out.Items, f.ref())
	}
	return out
}

const maxListRows = 1000

func doneSpan(e runlane.Environment, statuses []runlane.Status, shards rows.Shards, until string) *ddb.Span {
	sp := &ddb.Span{Index: indexes[1], SK: rows.RunSK}
	for _, status := range statuses {
		for shard := range shards.Read {
			sp.Partitions = append(sp.Partitions, ddb.Partition{
				Name:  rows.DonePartition(e, status, shard),
				From:  item.BeforeKeys,
				Until: until,
			})
		}
	}
	return sp
}

// minBatch is the smallest number of runs read at once: a filter may pass few of them.
const minBatch = 25

const (
	// maxScanRows limits the rows with runs to read for one page. A page at the limit has a cursor.
	maxScanRows = 2000
	// maxScanKeys limits the rows that one page drops by their key, which costs next to nothing.
	maxScanKeys = 50_000
	// maxScanChunk limits how many rows of a shard are read at once after all of the last ones were dropped.
	maxScanChunk = 1000
)

type found struct {
	row     rows.DueRow
	run     *rows.Run
	finding rows.Finding
}

// examine reads rows of the kinds in due order and drops rows of queues outside keep by their key. judge reads the runs
// and sets the unwanted ones to nil.
func (s *Store) examine(
	ctx context.Context, q *lane.DueQuery, what string, kinds []kindBound, keep func(runlane.QueueName) bool,
	judge func([]rows.DueRow) ([]found, error),
) (*runlane.Page[found], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, what)
	var after ddb.Position
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	shards, err := s.shardCounts(ctx, q.Environment)
	if err != nil {
		return nil, err
	}
	due := dueSpan()
	for _, bound := range kinds {
		for shard := range shards.Read {
			due.Partitions = append(due.Partitions, bound.partitions(q, shard)...)
		}
	}
	page := &runlane.Page[found]{}
	walk := s.db.NewWalk("scan", due, after, ddb.ChunkOf(limit))
	if q.Round != nil {
		walk.Firsts = &roundSpans{&s.spans, q.Round}
	}
	read := 0
	_, stopped, more, err := walk.Show(ctx, maxScanKeys, func(entries []ddb.Row) (int, bool, error) {
		entries = entries[:min(len(entries), max(limit-len(page.Items), minBatch))]
		var kept []rows.DueRow
		var behind []int // for each kept row, the number of rows taken with it
		for i, it := range entries {
			if row, ok := rows.ParseDueRow(it.Item); ok && keep(row.Queue) {
				kept, behind = append(kept, row), append(behind, i+1)
			}
		}
		if len(kept) == 0 {
			walk.Chunk = min(2*walk.Chunk, maxScanChunk)
			return len(entries), false, nil
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
		return len(entries), read >= maxScanRows, nil
	})
	if err != nil {
		return nil, err
	}
	if more {
		page.Next = rows.SealCursor(scope, stopped)
	}
	return page, nil
}

func dueSpan() *ddb.Span { return &ddb.Span{Index: indexes[0], SK: rows.RunSK} }

func scanScope(q *lane.DueQuery, what string) string {
	return fmt.Sprint(
		what, " ", q.Environment.Name(), " ", q.At.UnixMilli(), " ", q.Queues, " ", q.Without, " ",
		boundedNames(q.Bounded),
	)
}

func boundedNames(queues []runlane.Queue) []runlane.QueueName {
	var names []runlane.QueueName
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// kindBound selects the markers of a kind up to a moment. Slotless markers are ordered by queue: of these it selects
// all but the bounded queues', so that no caller skips them row by row.
type kindBound struct {
	kind  rows.MarkerKind
	until rows.Millis
}

// dueBound selects the due markers of a kind, without deliveries and ends within patience, of which there may be many.
func dueBound(kind rows.MarkerKind, at rows.Millis, p lane.Patience) kindBound {
	if kind == rows.Deliverable || kind == rows.Ended {
		at -= rows.Millis(p.Queued / time.Millisecond)
	}
	return kindBound{kind, at}
}

func (b kindBound) partitions(q *lane.DueQuery, shard int) (parts []ddb.Partition) {
	name := rows.DuePartition(q.Environment, b.kind, shard)
	if b.kind != rows.Slotless {
		return []ddb.Partition{{Name: name, From: item.BeforeKeys, Until: b.until.LastKey()}}
	}
	var queues []string
	for _, queue := range q.Bounded {
		queues = append(queues, string(queue.Name)+":")
	}
	slices.Sort(queues)
	from := item.BeforeKeys
	for _, queue := range queues {
		parts = append(parts, ddb.Partition{Name: name, From: from, Until: queue})
		from = queue + "~"
	}
	return append(parts, ddb.Partition{Name: name, From: from, Until: item.BeyondKeys})
}

func unbounded(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return q.Wants(queue) && !isBounded(q.Bounded, queue) }
}

func isBounded(queues []runlane.Queue, name runlane.QueueName) bool {
	return slices.ContainsFunc(queues, func(q runlane.Queue) bool { return q.Name == name })
}
