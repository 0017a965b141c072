package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/pages"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// refine completes or skips a row of a scan.
type refine func(c *file.Conn, e *entry, ref *lane.RunRef) (verdict, error)

// ListRunnableRuns returns what a worker may claim. Of the runs in q.Bounded these are all runs with a slot, and as
// many others as there are free slots.
func (s *Storage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	left := room{q: q, left: map[partitionKey]int{}}
	return s.scan(ctx, "ListRunnableRuns", q, func(c *file.Conn, e *entry, _ *lane.RunRef) (verdict, error) {
		allowed, err := left.allows(c, e)
		if err != nil || !allowed {
			return skip, err
		}
		return take, nil
	}, []record.Kind{record.Queued, record.Waiting, record.Leased})
}

// ListRunsNeedingDelivery returns runs that need a fresh delivery request, q.Bounded left out. A scheduled run whose
// row is not published yet comes with that row; one whose row was given up waits for the operator.
func (s *Storage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingDelivery", q, func(_ *file.Conn, e *entry, ref *lane.RunRef) (verdict, error) {
		d := e.Live()
		switch {
		case boundedPolicy(q, e.Run.Queue).Bounded():
			return skip, nil
		case d == nil || d.Status == lane.OutboxPublished:
			return take, nil
		case d.Status == lane.OutboxDeadLettered:
			return skip, nil
		default:
			ref.OutboxID = record.EventID(e.Run.ID, d.Sequence)
			return take, nil
		}
	}, []record.Kind{record.Waiting, record.Leased})
}

// ListRunsNeedingRedelivery returns queued runs whose published wakeup counts as lost, and those that waited for a slot
// of a queue that has no limit any more. It leaves q.Bounded out: what is lost there is found when its reservation is
// over.
func (s *Storage) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingRedelivery", q, func(_ *file.Conn, e *entry, _ *lane.RunRef) (verdict, error) {
		if boundedPolicy(q, e.Run.Queue).Bounded() {
			return skip, nil
		}
		return take, nil
	}, nil, deliveriesOf(record.Published), undelivered)
}

// ListRunsNeedingCancellationFinalization returns runs whose cancellation was requested and whose lease is over.
func (s *Storage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingCancellationFinalization", q,
		func(*file.Conn, *entry, *lane.RunRef) (verdict, error) { return take, nil },
		[]record.Kind{record.Cancelling})
}

// scan pages the runs of some kinds and of other lists that are due at q.At, in due order.
func (s *Storage) scan(
	ctx context.Context, method string, q *lane.DueQuery, judge refine, kinds []record.Kind, others ...list,
) (page *runlane.Page[lane.RunRef], err error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	scope := pages.NewScope(method, q.Environment, dueFilter(q)...)
	limit, after, err := pages.Open(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	now := record.At(q.At)
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		lists, err := s.runsOf(c, env, choice{wants: q.Wants}, kinds...)
		if err != nil {
			return err
		}
		w := newWalk(c, env, q.Environment, after, now, false, append(lists, others...)...)
		page, err = fillPage(w, scope, limit, 0, func(i item) (lane.RunRef, verdict, error) {
			if !q.Wants(i.Run.Queue) || i.Underway(now, q.Patience) {
				return lane.RunRef{}, skip, nil
			}
			ref := i.ref()
			v, err := judge(c, i.entry, &ref)
			return ref, v, err
		})
		return err
	})
	return page, err
}

// ref is the run as scans show it.
func (i item) ref() lane.RunRef {
	return lane.RunRef{
		RunKey:         lane.RunKey{Environment: i.Run.Environment, RunID: i.Run.ID},
		Queue:          i.Run.Queue,
		ConcurrencyKey: i.Run.ConcurrencyKey,
		Status:         i.Run.Status,
		AvailableAt:    i.at.Time(),
		Sequence:       i.Run.EventSequence,
	}
}

// dueFilter is the part of the query that a cursor is bound to. The instant is not part of it: it moves while a caller
// pages.
func dueFilter(q *lane.DueQuery) []string {
	var parts []string
	for _, queue := range q.Queues {
		parts = append(parts, "queue", string(queue))
	}
	if q.Queues != nil && len(q.Queues) == 0 {
		parts = append(parts, "no queue")
	}
	for _, queue := range q.Without {
		parts = append(parts, "without", string(queue))
	}
	for _, queue := range q.Bounded {
		parts = append(parts, "bounded", string(queue.Name))
	}
	return parts
}

// boundedPolicy is the policy that the query has for the queue; the zero value for one without a limit.
func boundedPolicy(q *lane.DueQuery, name runlane.QueueName) runlane.Queue {
	for _, queue := range q.Bounded {
		if queue.Name == name {
			return queue
		}
	}
	return runlane.Queue{}
}

// room keeps a scan from returning more runs of a partition than have slots.
type room struct {
	q    *lane.DueQuery
	left map[partitionKey]int
}

// allows judges a run that could start now.
func (r *room) allows(c *file.Conn, e *entry) (bool, error) {
	policy, now := boundedPolicy(r.q, e.Run.Queue), record.At(r.q.At)
	if !policy.Bounded() {
		return true, nil
	}
	if has, err := occupies(c, e, now); err != nil || has {
		return has, err
	}
	key := e.partition()
	left, known := r.left[key]
	if !known {
		taken, err := occupied(c, key, now)
		if err != nil {
			return false, err
		}
		left = policy.Concurrency - taken
	}
	r.left[key] = left - 1
	return left > 0, nil
}
