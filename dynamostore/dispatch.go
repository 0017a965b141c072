package dynamostore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxJumps bounds the partitions that one scan for slots visits: each costs a reading of its slots.
const maxJumps = 200

// staleMarkers are read beside those that are wanted: the index may still have some of runs that have just got a slot.
const staleMarkers = 3

const skDispatch = "dispatch"

// walkPosition is a place in the markers of runs that wait for a slot: a shard, and the marker behind which to go on. Several runs
// of a partition may have come at one instant and have the same marker: run is the key of the one behind which to go on among
// those; without it, it is behind all of them.
type walkPosition struct {
	Shard int    `json:"s" dynamodbav:"sh"`
	After string `json:"a,omitempty" dynamodbav:"af,omitempty"`
	Run   string `json:"p,omitempty" dynamodbav:"-"` // of a cursor only: another pass begins behind them all, and ends with them
}

// behind is the position of a row.
func (r dueRow) behind(e runlane.Environment, shard int) walkPosition {
	return walkPosition{shard, r.key.sort, runPK(lane.RunKey{Environment: e, RunID: r.run})}
}

// dispatchCursor resumes a scan for slots: first among the markers that have a time, then among the partitions.
type dispatchCursor struct {
	Timed   runlane.Cursor `json:"t,omitempty"`
	Walking bool           `json:"w,omitempty"`
	walkPosition
	Start   walkPosition `json:"f"` // where the pass began
	Wrapped bool         `json:"r,omitempty"`
}

// ListRunsNeedingDispatch implements lane.Storage. Runs with a time of their own come first (reservations and leases that are
// over, waits that are due), then those that wait for a slot, partition by partition. A partition without a free slot costs one
// reading of its slots and is jumped over. A scan that a bound ends is continued by the next one, behind the partition where it
// stopped, so that no partition is reached less often than others.
func (s *Store) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, "dispatch")
	var at dispatchCursor
	if err := openCursor(q.After, scope, &at); err != nil {
		return nil, err
	}
	d := newDispatch(s, q, limit)
	if q.ConcurrencyKey != nil {
		err := d.ofKey(ctx, *q.ConcurrencyKey)
		return &runlane.Page[lane.RunRef]{Items: d.refs}, err
	}
	if !at.Walking {
		next, err := d.timed(ctx, at.Timed)
		if err != nil {
			return nil, err
		}
		if next != "" {
			return &runlane.Page[lane.RunRef]{Items: d.refs, Next: sealCursor(scope, dispatchCursor{Timed: next})}, nil
		}
		if at.walkPosition, err = s.lastWalk(ctx, q.Environment); err != nil {
			return nil, err
		}
		at.Walking, at.Start = true, at.walkPosition
	}
	done, err := d.walk(ctx, &at)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.RunRef]{Items: d.refs}
	if !done {
		page.Next = sealCursor(scope, at)
	}
	return page, s.keepWalk(ctx, q.Environment, at, done)
}

// dispatch is one scan for slots.
type dispatch struct {
	store *Store
	q     *lane.DueQuery
	at    millis
	rooms map[slotPartition]*room // free slots left for this scan
	limit int
	jumps int
	refs  []lane.RunRef

	polling bool // for workers: what could be claimed now, in queues without a limit too
}

func newDispatch(s *Store, q *lane.DueQuery, limit int) *dispatch {
	return &dispatch{store: s, q: q, at: toMillis(q.At), rooms: map[slotPartition]*room{}, limit: limit}
}

func (d *dispatch) wants(queue runlane.QueueName) bool {
	return d.q.Wants(queue) && (d.polling || isBounded(d.q.Bounded, queue))
}

// accepts judges a run that waits for a slot, or waited for one when its queue had a limit.
func (d *dispatch) accepts(f *found) bool {
	if !d.polling {
		return f.sight.stage == dispatching
	}
	var ok bool
	f.sight.since, ok = f.run.runnable()
	return ok && f.sight.since <= d.at
}

// take returns a run that needs a slot if there is one for it. A running run whose slot is its own needs none; one without is
// returned even so, to be made waiting: a running run must not lie where full partitions are never read.
func (d *dispatch) take(ctx context.Context, f found) (taken bool, err error) {
	if f.run.status() != runlane.StatusRunning {
		p := f.run.partition()
		room, err := d.room(ctx, p)
		if err != nil || room.left == 0 {
			return false, err
		}
		d.give(f.run, p, room)
	}
	d.refs = append(d.refs, f.ref())
	return true, nil
}

// ofKey reads what waits for a slot in the partitions of one concurrency key, longest first.
func (d *dispatch) ofKey(ctx context.Context, key string) error {
	shards, err := d.store.shardCounts(ctx, d.q.Environment)
	if err != nil {
		return err
	}
	waiting := dueSpan()
	for _, queue := range d.q.Bounded {
		p := slotPartition{d.q.Environment, queue.Name, hashParts(key)}
		if !d.wants(queue.Name) {
			continue
		}
		// A partition waits in one shard. What was written when there were other numbers of shards is the walk's to find.
		shard := shardOf(string(p.queue)+":"+p.hash, shards.Write)
		if d.limit == 1 {
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
		waiting.partitions = append(waiting.partitions, partition{duePartition(d.q.Environment, slotless, shard), p.start(), p.end()})
	}
	few := d.limit + staleMarkers
	walk := &indexWalk{table: d.store.db, operation: "scan slots", span: waiting, chunk: few, batch: few, atOnce: MaxParallel}
	walk.add(waiting.partitions)
	_, _, _, err = walk.show(ctx, maxScanRows, func(found []indexRow) (int, bool, error) {
		found = found[:min(len(found), max(d.limit-len(d.refs), 1))]
		var rows []dueRow
		for _, it := range found {
			if row, ok := parseDueRow(it.item); ok {
				rows = append(rows, row)
			}
		}
		err := d.takeRows(ctx, rows)
		return len(found), len(d.refs) >= d.limit, err
	})
	return err
}

// timed reads the markers that have a time. Runs of full partitions are moved to where they wait for a slot.
func (d *dispatch) timed(ctx context.Context, after runlane.Cursor) (runlane.Cursor, error) {
	q := *d.q
	q.After, q.Limit = after, d.limit
	kinds := []kindBound{dueBound(deliverable, d.at, q.Patience), {waiting, d.at}, {leased, d.at}, {unpublished, d.at}, {parked, d.at}}
	page, err := d.store.examine(ctx, &q, "dispatch timed", kinds, d.wants, func(rows []dueRow) ([]found, error) {
		seen, err := d.store.look(ctx, &q, rows, d.at)
		if err != nil {
			return nil, err
		}
		var leaving []markerMove
		for i := range seen {
			if seen[i].run == nil {
				continue
			}
			taken := false
			if sight := seen[i].sight; sight.stage == nobody {
				leaving = append(leaving, markerMove{seen[i].run, sight.marker})
			} else if sight.stage == dispatching {
				if taken, err = d.take(ctx, seen[i]); err != nil {
					return nil, err
				}
				if !taken {
					leaving = append(leaving, markerMove{seen[i].run, marker{slotless, sight.since}})
				}
			}
			if !taken {
				seen[i].run = nil
			}
		}
		return seen, d.store.moveMarkers(ctx, leaving)
	})
	if err != nil {
		return "", err
	}
	return page.Next, nil
}

// walk goes through the partitions until it is around once (done), has enough, or has visited as many as it may.
func (d *dispatch) walk(ctx context.Context, at *dispatchCursor) (done bool, err error) {
	shards, err := d.store.shardCounts(ctx, d.q.Environment)
	if err != nil {
		return false, err
	}
	at.Shard %= shards.Read // the number may have changed since
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
		at.walkPosition = walkPosition{Shard: at.Shard + 1}
		if at.Shard == shards.Read {
			at.Shard, at.Wrapped = 0, true
		}
		if at.Wrapped && at.Shard == at.Start.Shard && at.Start.After == "" {
			return true, nil
		}
	}
}

// walkShard visits the partitions of a shard behind at.After, up to until where that is set. stopped: a bound was reached.
func (d *dispatch) walkShard(ctx context.Context, at *dispatchCursor, until string) (stopped bool, err error) {
	for {
		rows, err := d.store.slotlessRows(ctx, d.q.Environment, at.walkPosition)
		if err != nil || len(rows) == 0 {
			return false, err
		}
		jumped := false
		for len(rows) > 0 && !jumped {
			p, ok := rows[0].slotPartition(d.q.Environment)
			if until != "" && rows[0].key.sort > until {
				return false, nil
			}
			if len(d.refs) == d.limit || d.jumps >= maxJumps {
				return true, nil
			}
			room := 0
			if ok && d.wants(p.queue) {
				free, err := d.room(ctx, p)
				if err != nil {
					return false, err
				}
				room = free.left
			}
			if room == 0 {
				at.walkPosition, jumped = walkPosition{Shard: at.Shard, After: p.end()}, true
				continue
			}
			n := d.samePartition(rows, min(room, d.limit-len(d.refs)))
			if err := d.takeRows(ctx, rows[:n]); err != nil {
				return false, err
			}
			at.walkPosition, rows = rows[n-1].behind(d.q.Environment, at.Shard), rows[n:]
		}
	}
}

// samePartition counts rows of the first one's partition, at most so many.
func (d *dispatch) samePartition(rows []dueRow, most int) int {
	first, _ := rows[0].slotPartition(d.q.Environment)
	n := 1
	for n < min(len(rows), most) {
		if p, _ := rows[n].slotPartition(d.q.Environment); p != first {
			break
		}
		n++
	}
	return n
}

func (d *dispatch) takeRows(ctx context.Context, rows []dueRow) error {
	seen, err := d.store.look(ctx, d.q, rows, d.at)
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

// slotlessRows are the next markers of a shard behind a position.
func (s *Store) slotlessRows(ctx context.Context, e runlane.Environment, at walkPosition) (rows []dueRow, err error) {
	dp := text(duePartition(e, slotless, at.Shard))
	q := &Query{
		Operation: "scan slots", Index: indexDue, Where: "#dp = :dp AND #da > :after",
		Values: item{":dp": dp, ":after": text(cmp.Or(at.After, beforeKeys))}, Limit: BatchKeys,
	}
	if at.Run != "" {
		q.Where, q.Behind = "#dp = :dp AND #da >= :after", itemKey(at.Run, skRun)
		q.Behind[attrDueP], q.Behind[attrDueA] = dp, text(at.After)
	}
	err = s.db.Query(ctx, q, func(it item) (bool, error) {
		if row, ok := parseDueRow(it); ok {
			rows = append(rows, row)
		}
		return len(rows) < BatchKeys, nil
	})
	return rows, err
}

// slotPartition is the partition that a marker of a waiting run names.
func (r dueRow) slotPartition(e runlane.Environment) (slotPartition, bool) {
	queue, hash, ok := cutPartition(r.key.sort)
	return slotPartition{e, queue, hash}, ok
}

// start is before, and end behind, every marker of the partition.
func (p slotPartition) start() string { return fmt.Sprintf("%s:%s:", p.queue, p.hash) }
func (p slotPartition) end() string   { return p.start() + "~" }

// lastWalk is where the last pass over the partitions was ended by a bound.
func (s *Store) lastWalk(ctx context.Context, e runlane.Environment) (at walkPosition, err error) {
	raw, err := s.db.Get(ctx, "read config", configPK(e), skDispatch)
	if err != nil || raw == nil {
		return at, err
	}
	return at, unmarshalItem(raw, &at)
}

// keepWalk remembers where a pass was ended, and forgets it when one came around.
func (s *Store) keepWalk(ctx context.Context, e runlane.Environment, at dispatchCursor, done bool) error {
	if done && at.Start == (walkPosition{}) {
		return nil
	}
	to := at.walkPosition
	if done {
		to = walkPosition{}
	}
	_, _, err := s.db.Update(ctx, "keep scan", &update{
		key: itemKey(configPK(e), skDispatch), expression: "SET #sh = :sh, #af = :af",
		values: item{":sh": num(int64(to.Shard)), ":af": text(to.After)},
	})
	return err
}
