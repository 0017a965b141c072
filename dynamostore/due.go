package dynamostore

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// scanKinds are the markers that may hide work of a stage. A claim leaves its marker in q or w, so expired leases are there too. Runs
// that wait for a slot need none any more when their queue has lost its limit.
var scanKinds = map[stage][]markerKind{
	finalizing:   {deliverable, waiting, leased},
	delivering:   {deliverable, waiting, leased, slotless},
	publishing:   {unpublished, deliverable, waiting},
	redelivering: {parked, deliverable, leased, slotless}, // leased: reservations from when the queue had a limit
}

// scan reads the markers that are due, oldest first over all shards, and looks at their runs. Rows of the wanted stage are
// returned; a row at which nobody has anything to do gets the marker of the moment when somebody will, so that no scan reads it
// for ever; rows of other stages are theirs.
func (s *Store) scan(ctx context.Context, q *lane.DueQuery, wanted stage) (*runlane.Page[found], error) {
	at := toMillis(q.At)
	var kinds []kindBound
	for _, kind := range scanKinds[wanted] {
		kinds = append(kinds, dueBound(kind, at, q.Patience))
	}
	keep := unbounded(q)
	if wanted == finalizing {
		keep = q.Wants // a cancellation has nothing to do with slots
	}
	return s.examine(ctx, q, fmt.Sprint("due ", wanted), kinds, keep, func(rows []dueRow) ([]found, error) {
		seen, err := s.look(ctx, q, rows, at)
		if err != nil {
			return nil, err
		}
		if err := s.leaveMarkers(ctx, seen, wanted, at); err != nil {
			return nil, err
		}
		for i := range seen {
			if !seen[i].sight.concerns(wanted) {
				seen[i].run = nil
			}
		}
		return seen, nil
	})
}

// leaveMarkers moves what a look leaves with another marker. Each move is a plain write that depends on its own run alone, so they go
// at once: one after the other, a backlog at which nobody has anything to do would take the time of what lies behind it.
func (s *Store) leaveMarkers(ctx context.Context, seen []found, wanted stage, at millis) error {
	var leaving []markerMove
	for _, f := range seen {
		if to, moves := nextMarker(f.run, f.sight, wanted, at); moves {
			leaving = append(leaving, markerMove{f.run, to})
		}
	}
	return s.moveMarkers(ctx, leaving)
}

// readRows reads the runs of rows strongly. A row whose run is gone, finished or has another marker is stale: its run is nil. So is
// that of a run in a status that this version does not know: when somebody has to look at it, a look could not tell.
func (s *Store) readRows(ctx context.Context, e runlane.Environment, rows []dueRow) ([]found, error) {
	ids := make([]runlane.RunID, len(rows))
	for i, row := range rows {
		ids[i] = row.run
	}
	runs, err := s.readRuns(ctx, e, ids)
	out := make([]found, len(rows))
	for i, row := range rows {
		out[i].row = row
		if r := runs[row.run]; r != nil && r.due() == row.key && r.status().Known() {
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
	return seen, s.judge(ctx, q, seen, at)
}

// judge is look at runs that were read.
func (s *Store) judge(ctx context.Context, q *lane.DueQuery, seen []found, at millis) error {
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
		return err
	}
	for i := range seen {
		r := seen[i].run
		if r == nil {
			continue
		}
		row, bounded := deliveries[r.key().RunID], isBounded(q.Bounded, runlane.QueueName(r.Queue))
		if !bounded && handedOver(r, row, at, q.Patience) {
			seen[i].run = nil
			continue
		}
		seen[i].sight = look(r, row, at, bounded)
	}
	return nil
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
	err := s.db.BatchGet(ctx, "read deliveries", keys, func(it item) error {
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
	return s.moveMarkerFrom(ctx, r.PK, r.Sequence, r.due(), due, r.raw)
}

// markerMove is a marker for a run as it was read.
type markerMove struct {
	run *runItem
	to  marker
}

// moveMarkers writes the markers of several runs.
func (s *Store) moveMarkers(ctx context.Context, moves []markerMove) error {
	return InParallel(ctx, moves, func(ctx context.Context, _ int, m markerMove) error { return s.moveMarker(ctx, m.run, m.to) })
}

func (s *Store) moveMarkerFrom(ctx context.Context, pk string, sequence int64, from, to dueKey, before item) error {
	after, ok, err := s.db.Update(ctx, "move marker", markerUpdate(pk, sequence, from, to, before))
	if err == nil && ok {
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
	return s.scanRefs(ctx, q, redelivering)
}

// ListRunsNeedingCancellationFinalization implements lane.Storage.
func (s *Store) ListRunsNeedingCancellationFinalization(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, finalizing)
}
