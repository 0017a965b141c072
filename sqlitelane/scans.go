package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// refine completes or skips a row of a scan.
type refine func(c *file.Conn, e *entry, ref *lane.RunRef) (embedded.Verdict, error)

// ListRunnableRuns implements [lane.Storage].
func (s *Storage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	left := room{q: q}
	return s.scan(ctx, runnable, q, func(c *file.Conn, e *entry, _ *lane.RunRef) (embedded.Verdict, error) {
		allowed, err := left.allows(c, e)
		if err != nil || !allowed {
			return embedded.Skip, err
		}
		return embedded.Take, nil
	}, []record.Kind{record.Queued, record.Waiting, record.Leased})
}

// ListRunsNeedingDelivery implements [lane.Storage].
func (s *Storage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingDelivery", q, func(_ *file.Conn, e *entry, ref *lane.RunRef) (embedded.Verdict, error) {
		return embedded.NeedsDelivery(q, e.Live(), ref), nil
	}, []record.Kind{record.Waiting, record.Leased})
}

// ListRunsNeedingRedelivery implements [lane.Storage]. It also returns runs that waited for a slot of a queue that has
// no limit any more.
func (s *Storage) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingRedelivery", q, func(_ *file.Conn, e *entry, _ *lane.RunRef) (embedded.Verdict, error) {
		return embedded.Unbounded(q, e.Run.Queue), nil
	}, nil, deliveriesOf(embedded.Published), undelivered)
}

// ListRunsNeedingCancellationFinalization implements [lane.Storage].
func (s *Storage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingCancellationFinalization", q,
		func(*file.Conn, *entry, *lane.RunRef) (embedded.Verdict, error) { return embedded.Take, nil },
		[]record.Kind{record.Cancelling})
}

const runnable = "ListRunnableRuns"

// scan pages runs due at q.At in due order, runnable ones in the order of their ranks, from lists of some kinds and from other lists.
func (s *Storage) scan(
	ctx context.Context, method string, q *lane.DueQuery, judge refine, kinds []record.Kind, others ...list,
) (page *runlane.Page[lane.RunRef], err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.DueScope(method, q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	now := embedded.At(q.At)
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		lists, err := s.runsOf(c, env, choice{wants: q.Wants, ranked: method == runnable}, kinds...)
		if err != nil {
			return err
		}
		w := newWalk(c, env, q.Environment, after, now, false, append(lists, others...)...)
		page, err = embedded.FillPage(w.next, scope, limit, 0, func(i item) (lane.RunRef, embedded.Verdict, error) {
			if !q.Wants(i.Run.Queue) || i.Underway(now, q.Patience) {
				return lane.RunRef{}, embedded.Skip, nil
			}
			ref := i.ref()
			v, err := judge(c, i.entry, &ref)
			return ref, v, err
		})
		return err
	})
	return page, err
}

func (i item) ref() lane.RunRef {
	return lane.RunRef{
		RunKey:         lane.RunKey{Environment: i.Run.Environment, RunID: i.Run.ID},
		Queue:          i.Run.Queue,
		ConcurrencyKey: i.Run.ConcurrencyKey,
		Priority:       i.Run.Priority,
		Status:         i.Run.Status,
		AvailableAt:    i.at.Time(),
		Sequence:       i.Run.EventSequence,
	}
}

// room counts the free slots that a scan has not given away.
type room struct {
	q    *lane.DueQuery
	left embedded.Room[partitionKey]
}

// allows reports whether a runnable run has, or could get, a slot.
func (r *room) allows(c *file.Conn, e *entry) (bool, error) {
	policy, now := embedded.BoundedPolicy(r.q, e.Run.Queue), embedded.At(r.q.At)
	if !policy.Bounded() {
		return true, nil
	}
	has, err := occupies(c, e, now)
	switch {
	case err != nil || has && !policy.Rated():
		return has, err
	case has:
		pace, err := paceOf(c, e.partition())
		return err == nil && pace.Starts(policy, r.q.At) > 0, err
	}
	return r.left.Allows(e.partition(), func() (int, error) { return roomOf(c, policy, e.partition(), r.q.At, true) })
}
