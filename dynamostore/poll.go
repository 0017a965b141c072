package dynamostore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ListRunnableRuns implements lane.Storage for workers that poll. It moves no marker. A queued run is runnable in any
// state of its wakeup, so deliveries are read up to any time. A run of a bounded queue needs a slot, its own or a free
// one.
func (s *Store) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, "runnable")
	var cursor dispatchCursor
	if err := rows.OpenCursor(q.After, scope, &cursor); err != nil {
		return nil, err
	}
	d := newDispatch(s, q, limit)
	d.polling = true
	if !cursor.Walking {
		next, err := d.takeRunnable(ctx, cursor.Timed)
		if err != nil {
			return nil, err
		}
		if next != "" {
			return &runlane.Page[lane.RunRef]{
				Items: sortRefs(d.refs),
				Next:  rows.SealCursor(scope, dispatchCursor{Timed: next}),
			}, nil
		}
		cursor.Walking = true
	}
	done, err := d.walk(ctx, &cursor)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.RunRef]{}
	if !done {
		page.Next = rows.SealCursor(scope, cursor)
	}
	page.Items = sortRefs(d.refs)
	return page, nil
}

func (d *dispatch) takeRunnable(ctx context.Context, after runlane.Cursor) (runlane.Cursor, error) {
	q := *d.q
	q.After, q.Limit = after, d.limit
	leases := d.at
	if len(q.Bounded) > 0 {
		leases = rows.FarFuture // includes reservations
	}
	kinds := []kindBound{
		{rows.Deliverable, d.at}, {rows.Waiting, d.at}, {rows.Leased, leases}, {rows.Unpublished, rows.FarFuture},
		{rows.Parked, rows.FarFuture}, {rows.DeadLetter, rows.FarFuture},
	}
	page, err := d.store.examine(ctx, &q, "runnable timed", kinds, q.Wants, func(due []rows.DueRow) ([]found, error) {
		seen, err := d.store.readRows(ctx, q.Environment, due)
		for i := range seen {
			r := seen[i].run
			if r == nil || err != nil {
				continue
			}
			var ok bool
			seen[i].finding.Since, ok = r.RunnableAt()
			if ok = ok && seen[i].finding.Since <= d.at; ok && isBounded(q.Bounded, runlane.QueueName(r.Queue)) {
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

// hasSlot reports whether a worker could claim the run now, with its own slot or a free one. The free slot then counts
// as taken.
func (d *dispatch) hasSlot(ctx context.Context, r *rows.Run) (bool, error) {
	if r.Slot != 0 && (r.State() == runlane.StatusRunning || r.DispatchExpiresAt > d.at) {
		queue := d.policy(runlane.QueueName(r.Queue))
		if !queue.Rated() {
			return true, nil
		}
		left, err := d.paceRoom(ctx, r.Partition(), queue)
		return left > 0, err
	}
	room, err := d.room(ctx, r.Partition())
	if err != nil || room.left == 0 {
		return false, err
	}
	d.give(r, r.Partition(), room)
	return true, nil
}

func sortRefs(list []lane.RunRef) []lane.RunRef {
	slices.SortStableFunc(list, func(a, b lane.RunRef) int {
		return cmp.Or(a.Rank().Compare(b.Rank()), strings.Compare(string(a.RunID), string(b.RunID)))
	})
	return list
}
