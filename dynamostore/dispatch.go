package dynamostore

import (
	"cmp"
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// maxJumps limits the partitions of one scan for slots: each costs a read of its slots.
const maxJumps = 200

// staleMarkers are extra rows to read: the index may still have runs that just got a slot.
const staleMarkers = 3

const skDispatch = "dispatch"

// dispatchCursor resumes a scan for slots: first in the markers with a time, then in the partitions.
type dispatchCursor struct {
	Timed   runlane.Cursor `json:"t,omitempty"`
	Walking bool           `json:"w,omitempty"`
	rows.WalkPosition
	Start   rows.WalkPosition `json:"f"` // where the pass began
	Wrapped bool              `json:"r,omitempty"`
}

// ListRunsNeedingDispatch implements lane.Storage. Runs with a time in their marker come first (expired reservations
// and leases, due waits), then slotless runs by partition. A full partition costs one read and is skipped. After a
// limit the next scan continues with the next partition, so that all are reached equally often.
func (s *Store) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, "dispatch")
	var at dispatchCursor
	if err := rows.OpenCursor(q.After, scope, &at); err != nil {
		return nil, err
	}
	d := newDispatch(s, q, limit)
	if q.ConcurrencyKey != nil {
		err := d.takeOfKey(ctx, *q.ConcurrencyKey)
		return &runlane.Page[lane.RunRef]{Items: d.refs}, err
	}
	if !at.Walking {
		next, err := d.takeTimed(ctx, at.Timed)
		if err != nil {
			return nil, err
		}
		if next != "" {
			return &runlane.Page[lane.RunRef]{
				Items: d.refs,
				Next:  rows.SealCursor(scope, dispatchCursor{Timed: next}),
			}, nil
		}
		if at.WalkPosition, err = s.loadWalk(ctx, q.Environment); err != nil {
			return nil, err
		}
		at.Walking, at.Start = true, at.WalkPosition
	}
	done, err := d.walk(ctx, &at)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.RunRef]{Items: d.refs}
	if !done {
		page.Next = rows.SealCursor(scope, at)
	}
	return page, s.saveWalk(ctx, q.Environment, at, done)
}

// takeOfKey takes the longest waiting runs in the partitions of one concurrency key.
func (d *dispatch) takeOfKey(ctx context.Context, key string) error {
	shards, err := d.store.shardCounts(ctx, d.q.Environment)
	if err != nil {
		return err
	}
	waiting := dueSpan()
	for _, queue := range d.q.Bounded {
		p := rows.Partition{Environment: d.q.Environment, Queue: queue.Name, Hash: rows.Hash(key)}
		if !d.wants(queue.Name) {
			continue
		}
		// A partition waits in one shard. The walk finds rows written under other numbers of shards.
		shard := rows.ShardOf(string(p.Queue)+":"+p.Hash, shards.Write)
		if queue.Rated() && queue.Concurrency > 0 {
			left, err := d.paceRoom(ctx, p, queue)
			if err != nil {
				return err
			}
			if left == 0 {
				continue
			}
		}
		if d.limit == 1 && queue.Concurrency > 0 {
			if err := d.offer(ctx, p, queue.Concurrency, shard); err != nil || len(d.refs) > 0 {
				return err
			}
			continue
		}
		room, err := d.room(ctx, p)
		if err != nil {
			return err
		}
		if room.left == 0 {
			continue
		}
		waiting.Partitions = append(waiting.Partitions, ddb.Partition{
			Name: rows.DuePartition(d.q.Environment, rows.Slotless, shard), From: p.Start(), Until: p.End(),
		})
	}
	few := d.limit + staleMarkers
	walk := &ddb.Walking{
		Table:     d.store.db,
		Operation: "scan slots",
		Span:      waiting,
		Chunk:     few,
		Batch:     few,
		AtOnce:    ddb.MaxParallel,
	}
	walk.Add(waiting.Partitions)
	_, _, _, err = walk.Show(ctx, maxScanRows, func(found []ddb.Row) (int, bool, error) {
		found = found[:min(len(found), max(d.limit-len(d.refs), 1))]
		var entries []rows.DueRow
		for _, it := range found {
			row, ok := rows.ParseDueRow(it.Item)
			if ok && (d.limit > 1 || !d.store.offers.isStale(row)) {
				entries = append(entries, row)
			}
		}
		err := d.takeRows(ctx, entries)
		if d.limit == 1 && err == nil { // taken by this caller, or not waiting any more
			for _, row := range entries {
				d.store.offers.markStale(row)
			}
		}
		return len(found), len(d.refs) >= d.limit, err
	})
	return err
}

// takeTimed reads the markers with a time. Runs of full partitions get the marker of runs that wait for a slot.
func (d *dispatch) takeTimed(ctx context.Context, after runlane.Cursor) (runlane.Cursor, error) {
	q := *d.q
	q.After, q.Limit = after, d.limit
	kinds := []kindBound{
		dueBound(rows.Deliverable, d.at, q.Patience),
		{rows.Waiting, d.at},
		{rows.Leased, d.at},
		{rows.Unpublished, d.at},
		{rows.Parked, d.at},
	}
	page, err := d.store.examine(
		ctx,
		&q,
		"dispatch timed",
		kinds,
		d.wants,
		func(entries []rows.DueRow) ([]found, error) {
			seen, err := d.store.inspect(ctx, &q, entries, d.at)
			if err != nil {
				return nil, err
			}
			var leaving []markerMove
			for i := range seen {
				if seen[i].run == nil {
					continue
				}
				taken := false
				if found := seen[i].finding; found.Stage == rows.NoStage {
					leaving = append(leaving, markerMove{seen[i].run, found.Marker})
				} else if found.Stage == rows.Dispatching {
					if taken, err = d.take(ctx, seen[i]); err != nil {
						return nil, err
					}
					if !taken {
						leaving = append(leaving, markerMove{seen[i].run, rows.AfterFullQueue(found.Since)})
					}
				}
				if !taken {
					seen[i].run = nil
				}
			}
			return seen, d.store.moveMarkers(ctx, leaving)
		},
	)
	if err != nil {
		return "", err
	}
	return page.Next, nil
}

// walk visits the partitions until all are visited (done), the page is full, or a limit is reached.
func (d *dispatch) walk(ctx context.Context, at *dispatchCursor) (done bool, err error) {
	shards, err := d.store.shardCounts(ctx, d.q.Environment)
	if err != nil {
		return false, err
	}
	at.Shard %= shards.Read // the number may have changed
	for {
		until := ""
		if at.Wrapped && at.Shard == at.Start.Shard {
			until = at.Start.After
		}
		stopped, err := d.walkShard(ctx, at, until)
		if err != nil || stopped {
			return false, err
		}
		if at.Wrapped && at.Shard == at.Start.Shard {
			return true, nil
		}
		at.WalkPosition = rows.WalkPosition{Shard: at.Shard + 1}
		if at.Shard == shards.Read {
			at.Shard, at.Wrapped = 0, true
		}
		if at.Wrapped && at.Shard == at.Start.Shard && at.Start.After == "" {
			return true, nil
		}
	}
}

// walkShard visits the partitions of a shard after at.After, up to until unless it is empty. stopped: a limit was
// reached.
func (d *dispatch) walkShard(ctx context.Context, at *dispatchCursor, until string) (stopped bool, err error) {
	for {
		entries, err := d.store.slotlessRows(ctx, d.q.Environment, at.WalkPosition)
		if err != nil || len(entries) == 0 {
			return false, err
		}
		jumped := false
		for len(entries) > 0 && !jumped {
			p, ok := entries[0].SlotPartition(d.q.Environment)
			if until != "" && entries[0].Key.Sort > until {
				return false, nil
			}
			if len(d.refs) == d.limit || d.jumps >= maxJumps {
				return true, nil
			}
			room := 0
			if ok && d.wants(p.Queue) {
				free, err := d.room(ctx, p)
				if err != nil {
					return false, err
				}
				room = free.left
			}
			if room == 0 {
				at.WalkPosition, jumped = rows.WalkPosition{Shard: at.Shard, After: p.End()}, true
				continue
			}
			n := d.samePartition(entries, min(room, d.limit-len(d.refs)))
			if err := d.takeRows(ctx, entries[:n]); err != nil {
				return false, err
			}
			at.WalkPosition, entries = entries[n-1].Behind(d.q.Environment, at.Shard), entries[n:]
		}
	}
}

func (d *dispatch) samePartition(due []rows.DueRow, most int) int {
	first, _ := due[0].SlotPartition(d.q.Environment)
	n := 1
	for n < min(len(due), most) {
		if p, _ := due[n].SlotPartition(d.q.Environment); p != first {
			break
		}
		n++
	}
	return n
}

func (d *dispatch) takeRows(ctx context.Context, due []rows.DueRow) error {
	seen, err := d.store.inspect(ctx, d.q, due, d.at)
	if err != nil {
		return err
	}
	for i := range seen {
		if f := &seen[i]; f.run != nil && d.accepts(f) {
			if _, err := d.take(ctx, *f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) slotlessRows(
	ctx context.Context, e runlane.Environment, at rows.WalkPosition,
) (entries []rows.DueRow, err error) {
	dp := item.Text(rows.DuePartition(e, rows.Slotless, at.Shard))
	q := &ddb.Query{
		Operation: "scan slots",
		Index:     rows.IndexDue,
		Where:     "#dp = :dp AND #da > :after",
		Values:    item.Item{":dp": dp, ":after": item.Text(cmp.Or(at.After, item.BeforeKeys))},
		Limit:     ddb.BatchKeys,
	}
	if at.Run != "" {
		q.Where, q.Behind = "#dp = :dp AND #da >= :after", item.Key(at.Run, rows.RunSK)
		q.Behind[rows.AttrDueP], q.Behind[rows.AttrDueA] = dp, item.Text(at.After)
	}
	err = s.db.Query(ctx, q, func(it item.Item) (bool, error) {
		if row, ok := rows.ParseDueRow(it); ok {
			entries = append(entries, row)
		}
		return len(entries) < ddb.BatchKeys, nil
	})
	return entries, err
}

func (s *Store) loadWalk(ctx context.Context, e runlane.Environment) (at rows.WalkPosition, err error) {
	raw, err := s.db.Get(ctx, "read config", rows.ConfigPK(e), skDispatch)
	if err != nil || raw == nil {
		return at, err
	}
	return at, rows.Unmarshal(raw, &at)
}

// saveWalk stores where a pass ended, or deletes that when a pass is complete.
func (s *Store) saveWalk(ctx context.Context, e runlane.Environment, at dispatchCursor, done bool) error {
	if done && at.Start == (rows.WalkPosition{}) {
		return nil
	}
	to := at.WalkPosition
	if done {
		to = rows.WalkPosition{}
	}
	_, _, err := s.db.Update(ctx, "keep scan", &item.Update{
		Key: item.Key(rows.ConfigPK(e), skDispatch), Expression: "SET #sh = :sh, #af = :af",
		Values: item.Item{":sh": item.Num(int64(to.Shard)), ":af": item.Text(to.After)},
	})
	return err
}
