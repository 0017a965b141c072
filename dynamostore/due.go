package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxScanRows bounds the index rows that one scan examines. The bound reached is a page with a cursor.
const maxScanRows = 2000

// dueRow is an entry of the index due.
type dueRow struct {
	run    runlane.RunID
	key    dueKey
	marker marker
	queue  runlane.QueueName
}

// duePosition is the place behind which a scan resumes: markers in their order, runs within one.
type duePosition struct {
	Due string        `json:"d"`
	Run runlane.RunID `json:"r"`
}

func (p duePosition) compare(other duePosition) int {
	return cmp.Or(strings.Compare(p.Due, other.Due), strings.Compare(string(p.Run), string(other.Run)))
}

func (p duePosition) less(other duePosition) bool { return p.compare(other) < 0 }

func (r dueRow) position() duePosition { return duePosition{r.key.sort, r.run} }

// found is a row whose run was read and looked at.
type found struct {
	row   dueRow
	run   *runItem
	sight sight
}

// scanKinds are the markers that may hide work of a stage. A claim leaves its marker in q or w, so expired leases are there too.
var scanKinds = map[stage][]markerKind{
	finalizing:   {deliverable, waiting, leased},
	delivering:   {deliverable, waiting, leased},
	publishing:   {unpublished, deliverable, waiting},
	redelivering: {parked, deliverable},
}

// scan reads the markers that are due, oldest first over all shards, and looks at their runs. Rows of the wanted stage are
// returned; a row at which nobody has anything to do gets the marker of the moment when somebody will, so that no scan reads it
// for ever; rows of other stages are theirs.
func (s *Store) scan(ctx context.Context, q *lane.DueQuery, wanted stage) (*runlane.Page[found], error) {
	at := toMillis(q.At)
	var kinds []kindBound
	for _, kind := range scanKinds[wanted] {
		kinds = append(kinds, kindBound{kind, at})
	}
	return s.examine(ctx, q, fmt.Sprint("due ", wanted), kinds, unbounded(q), func(rows []dueRow) ([]found, error) {
		seen, err := s.look(ctx, q, rows, at)
		if err != nil {
			return nil, err
		}
		for i := range seen {
			if seen[i].run != nil && seen[i].sight.stage == nobody {
				if err := s.moveMarker(ctx, seen[i].run, seen[i].sight.marker); err != nil {
					return nil, err
				}
			}
			if !seen[i].sight.concerns(wanted) {
				seen[i].run = nil
			}
		}
		return seen, nil
	})
}

// examine pages through the rows of the kinds in due order; judge reads their runs and leaves those it wants with their run set.
func (s *Store) examine(
	ctx context.Context, q *lane.DueQuery, what string, kinds []kindBound, keep func(runlane.QueueName) bool,
	judge func([]dueRow) ([]found, error),
) (*runlane.Page[found], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, what)
	var after duePosition
	if err := openCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	rows, end, more, err := s.dueRows(ctx, q.Environment, kinds, keep, after, limit)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[found]{}
	for len(rows) > 0 {
		batch := rows[:min(len(rows), batchKeys)]
		seen, err := judge(batch)
		if err != nil {
			return nil, err
		}
		rows = rows[len(batch):]
		for i, f := range seen {
			if f.run == nil {
				continue
			}
			page.Items = append(page.Items, f)
			if len(page.Items) == limit && (i+1 < len(seen) || len(rows) > 0 || more) {
				page.Next = sealCursor(scope, f.row.position())
				return page, nil
			}
		}
	}
	if more {
		page.Next = sealCursor(scope, end)
	}
	return page, nil
}

func scanScope(q *lane.DueQuery, what string) string {
	return fmt.Sprint(what, " ", q.Environment.Name(), " ", q.At.UnixMilli(), " ", q.Queues, " ", boundedNames(q.Bounded))
}

func boundedNames(queues []runlane.Queue) []runlane.QueueName {
	var names []runlane.QueueName
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// kindBound asks for the markers of a kind up to a moment.
type kindBound struct {
	kind  markerKind
	until millis
}

// shardRows is what one partition of the index gave. cut tells that there is more behind reach.
type shardRows struct {
	rows  []dueRow
	reach duePosition
	cut   bool
}

// dueRows merges the shards of the kinds in due order, up to where all that were cut reach: behind that, order is not known yet.
// end is where the next page begins; more tells that there may be one.
func (s *Store) dueRows(
	ctx context.Context, e runlane.Environment, kinds []kindBound, keep func(runlane.QueueName) bool, after duePosition, limit int,
) (rows []dueRow, end duePosition, more bool, err error) {
	shards, err := s.shardCounts(ctx, e)
	if err != nil {
		return nil, end, false, err
	}
	parts := make([]shardRows, len(kinds)*shards.Read)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for k, kind := range kinds {
		for shard := range shards.Read {
			group.Go(func() (err error) {
				partition := duePartition(e, kind.kind, shard)
				parts[k*shards.Read+shard], err = s.dueShard(groupCtx, partition, kind.until, keep, after, limit)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, end, false, err
	}
	rows, end, more = mergeShards(parts)
	return rows, end, more, nil
}

func mergeShards(parts []shardRows) (rows []dueRow, end duePosition, more bool) {
	for _, part := range parts {
		rows = append(rows, part.rows...)
		if part.cut && (!more || part.reach.less(end)) {
			end, more = part.reach, true
		}
	}
	slices.SortFunc(rows, func(a, b dueRow) int { return a.position().compare(b.position()) })
	if more {
		rows = slices.DeleteFunc(rows, func(r dueRow) bool { return end.less(r.position()) })
	}
	return rows, end, more
}

// dueShard reads one partition of the index until it has enough rows or examined its share; rows of other queues are dropped
// from the key alone.
func (s *Store) dueShard(
	ctx context.Context, partition string, until millis, keep func(runlane.QueueName) bool, after duePosition, limit int,
) (part shardRows, err error) {
	from := after.Due
	if from == "" {
		from = "0"
	}
	examined := 0
	err = s.query(ctx, "scan", &dynamodb.QueryInput{
		IndexName:                 aws.String(indexDue),
		KeyConditionExpression:    aws.String("#dp = :dp AND #da BETWEEN :from AND :until"),
		ExpressionAttributeValues: item{":dp": text(partition), ":from": text(from), ":until": text(fmt.Sprintf("%013d:\U0010FFFF", until))},
		Limit:                     aws.Int32(int32(max(limit, batchKeys))), //nolint:gosec // bounded by the page limit
	}, func(it item) (bool, error) {
		if len(part.rows) == limit || examined == maxScanRows {
			part.cut = true
			return false, nil
		}
		examined++
		row, ok := parseDueRow(it)
		if !ok {
			return true, nil
		}
		part.reach = row.position()
		if after.less(part.reach) && keep(row.queue) {
			part.rows = append(part.rows, row)
		}
		return true, nil
	})
	return part, err
}

// unbounded keeps the queues that a query asks for, but for bounded ones.
func unbounded(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return anyQueue(q)(queue) && !isBounded(q.Bounded, queue) }
}

// anyQueue keeps the queues that a query asks for.
func anyQueue(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return q.Queues == nil || slices.Contains(q.Queues, queue) }
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

// readRows reads the runs of rows strongly. A row whose run is gone, finished or has another marker is stale: its run is nil.
func (s *Store) readRows(ctx context.Context, e runlane.Environment, rows []dueRow) ([]found, error) {
	ids := make([]runlane.RunID, len(rows))
	for i, row := range rows {
		ids[i] = row.run
	}
	runs, err := s.readRuns(ctx, e, ids)
	out := make([]found, len(rows))
	for i, row := range rows {
		out[i].row = row
		if r := runs[row.run]; r != nil && r.due() == row.key {
			out[i].run = r
		}
	}
	return out, err
}

// look judges rows by their runs and the delivery rows that a judgement needs. What patience leaves to others has no run in the
// result, like stale rows.
func (s *Store) look(ctx context.Context, q *lane.DueQuery, rows []dueRow, at millis) ([]found, error) {
	seen, err := s.readRows(ctx, q.Environment, rows)
	if err != nil {
		return nil, err
	}
	var needed []*runItem
	for i := range seen {
		r := seen[i].run
		if r != nil && patient(r, at, q.Patience) {
			seen[i].run, r = nil, nil
		}
		if r != nil && r.DeliveryLog != 0 {
			needed = append(needed, r)
		}
	}
	deliveries, err := s.readDeliveries(ctx, needed)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		if r := seen[i].run; r != nil {
			seen[i].sight = look(r, deliveries[r.key().RunID], at, isBounded(q.Bounded, runlane.QueueName(r.Queue)))
		}
	}
	return seen, nil
}

// readDeliveries reads the latest delivery rows of runs.
func (s *Store) readDeliveries(ctx context.Context, runs []*runItem) (map[runlane.RunID]*delivery, error) {
	index := map[string]*runItem{}
	var keys []item
	for _, r := range runs {
		index[r.PK] = r
		keys = append(keys, itemKey(r.PK, logSK(r.DeliveryLog)))
	}
	rows := map[runlane.RunID]*delivery{}
	err := s.batchGet(ctx, "read deliveries", keys, func(it item) error {
		var log logItem
		if err := unmarshalItem(it, &log); err != nil {
			return err
		}
		if r := index[log.PK]; r != nil && r.DeliveryIndex < len(log.Deliveries) {
			rows[r.key().RunID] = &log.Deliveries[r.DeliveryIndex]
		}
		return nil
	})
	return rows, err
}

// moveMarker writes a marker if nothing about the run has changed since it was read; if something has, whoever changed it looks
// later. It never changes the sequence.
func (s *Store) moveMarker(ctx context.Context, r *runItem, to marker) error {
	shards, err := s.shardCounts(ctx, r.key().Environment)
	if err != nil {
		return err
	}
	due := r.dueKey(to, shards)
	if due == r.due() {
		return nil
	}
	return s.moveMarkerFrom(ctx, r.PK, r.Sequence, r.due(), due, itemSize(r.raw))
}

func (s *Store) moveMarkerFrom(ctx context.Context, pk string, sequence int64, from, to dueKey, size int) error {
	unchanged := equal("sq", num(sequence)).and(equal(attrDueP, text(from.partition)), equal(attrDueA, text(from.sort)))
	after, ok, err := s.update(ctx, "move marker", itemKey(pk, skRun), "SET #dp = :dp, #da = :da", unchanged,
		item{":dp": text(to.partition), ":da": text(to.sort)})
	if err == nil && ok {
		s.used(ctx, "move marker", Usage{Requests: 1, WriteUnits: float64(units(max(size, itemSize(after))) + 2)})
		if r, err := unmarshalRun(after); err == nil {
			s.snapshots.put(r.PK, r)
		}
	}
	return err
}

// ref is what a scan returns of a run.
func (f found) ref() lane.RunRef {
	ref := lane.RunRef{
		RunKey: f.run.key(), Queue: runlane.QueueName(f.run.Queue), ConcurrencyKey: f.run.ConcurrencyKey, Status: f.run.status(),
		AvailableAt: f.sight.since.time(), Sequence: f.run.Sequence,
	}
	if f.sight.stage == delivering {
		ref.OutboxID = f.sight.outbox
	}
	return ref
}

func (s *Store) scanRefs(ctx context.Context, q *lane.DueQuery, wanted stage) (*runlane.Page[lane.RunRef], error) {
	page, err := s.scan(ctx, q, wanted)
	if err != nil {
		return nil, err
	}
	return refs(page), nil
}

func refs(page *runlane.Page[found]) *runlane.Page[lane.RunRef] {
	out := &runlane.Page[lane.RunRef]{Next: page.Next}
	for _, f := range page.Items {
		out.Items = append(out.Items, f.ref())
	}
	return out
}

// ListRunsNeedingDelivery implements lane.Storage.
func (s *Store) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, delivering)
}

// ListRunsNeedingRedelivery implements lane.Storage. Runs that waited for a slot in a queue that has no limit any more need a
// wakeup too: they have none.
func (s *Store) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	page, err := s.scanRefs(ctx, q, redelivering)
	if err != nil || page.Next != "" {
		return page, err
	}
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	rows, err := s.strandedRows(ctx, q, min(limit-len(page.Items), batchKeys))
	if err != nil {
		return nil, err
	}
	stranded, err := s.look(ctx, q, rows, toMillis(q.At))
	for _, f := range stranded {
		if f.run != nil && f.sight.stage == redelivering {
			page.Items = append(page.Items, f.ref())
		}
	}
	return page, err
}

// ListRunsNeedingCancellationFinalization implements lane.Storage.
func (s *Store) ListRunsNeedingCancellationFinalization(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, finalizing)
}

// farFuture is beyond every marker.
const farFuture millis = 9_999_999_999_999

// ListRunnableRuns implements lane.Storage. It moves no marker: it reads for workers that poll, not for maintenance. A queued
// run is runnable whatever its wakeup does, so markers of deliveries are read up to any time. A run of a bounded queue is
// runnable while it holds a slot, or while there is one for it.
func (s *Store) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, "runnable")
	var cursor dispatchCursor
	if err := openCursor(q.After, scope, &cursor); err != nil {
		return nil, err
	}
	d := newDispatch(s, q, limit)
	if !cursor.Walking {
		next, err := d.runnable(ctx, cursor.Timed)
		if err != nil {
			return nil, err
		}
		if next != "" {
			return &runlane.Page[lane.RunRef]{Items: sortRefs(d.refs), Next: sealCursor(scope, dispatchCursor{Timed: next})}, nil
		}
		cursor.Walking = true
	}
	page := &runlane.Page[lane.RunRef]{}
	if len(q.Bounded) > 0 {
		done, err := d.walk(ctx, &cursor)
		if err != nil {
			return nil, err
		}
		if !done {
			page.Next = sealCursor(scope, cursor)
		}
	}
	page.Items = sortRefs(d.refs)
	return page, nil
}

// runnable reads the markers that have a time, for a worker that polls.
func (d *dispatch) runnable(ctx context.Context, after runlane.Cursor) (runlane.Cursor, error) {
	q := *d.q
	q.After, q.Limit = after, d.limit
	leases := d.at
	if len(q.Bounded) > 0 {
		leases = farFuture // reservations are among them
	}
	kinds := []kindBound{
		{deliverable, d.at}, {waiting, d.at}, {leased, leases}, {unpublished, farFuture}, {parked, farFuture}, {deadLetter, farFuture},
	}
	page, err := d.store.examine(ctx, &q, "runnable timed", kinds, anyQueue(&q), func(rows []dueRow) ([]found, error) {
		seen, err := d.store.readRows(ctx, q.Environment, rows)
		for i := range seen {
			r := seen[i].run
			if r == nil || err != nil {
				continue
			}
			due, ok := lane.RunnableAt(r.run())
			seen[i].sight.since = toMillis(due)
			if ok = ok && seen[i].sight.since <= d.at; ok && isBounded(q.Bounded, runlane.QueueName(r.Queue)) {
				ok, err = d.hasSlot(ctx, r)
			}
			if !ok {
				seen[i].run = nil
			}
		}
		return seen, err
	})
	if err != nil {
		return "", err
	}
	d.refs = append(d.refs, refs(page).Items...)
	return page.Next, nil
}

// hasSlot reports whether a worker could claim the run now: by its own slot, or by a free one, which it then counts as taken.
func (d *dispatch) hasSlot(ctx context.Context, r *runItem) (bool, error) {
	if r.Slot != 0 && (r.status() == runlane.StatusRunning || r.DispatchExpiresAt > d.at) {
		return true, nil
	}
	room, err := d.room(ctx, r.partition())
	if err == nil && room > 0 {
		d.rooms[r.partition()]--
	}
	return room > 0, err
}

func sortRefs(list []lane.RunRef) []lane.RunRef {
	slices.SortStableFunc(list, func(a, b lane.RunRef) int {
		return cmp.Or(a.AvailableAt.Compare(b.AvailableAt), strings.Compare(string(a.RunID), string(b.RunID)))
	})
	return list
}
