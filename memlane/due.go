package memlane

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ListRunnableRuns returns what a worker may claim. Of the runs in q.Bounded these are all runs with a slot, and as
// many others as there are free slots.
func (s *Storage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	left := room{q: q}
	return s.scan(ctx, "ListRunnableRuns", q, func(k kind) bool {
		return k.is().Active() && k.is() != runlane.StatusCancellationRequested
	}, nil, func(env *environment, e *entry, _ *lane.RunRef) verdict {
		if !left.allows(env, e) {
			return skip
		}
		return take
	})
}

// ListRunsNeedingDelivery returns runs that need a fresh delivery request, q.Bounded left out. A scheduled run whose
// row is not published yet comes with that row; one whose row was given up waits for the operator.
func (s *Storage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingDelivery", q, func(k kind) bool {
		return k.is().Waiting() || k.is() == runlane.StatusRunning
	}, nil, func(_ *environment, e *entry, ref *lane.RunRef) verdict {
		r := e.liveRow()
		switch {
		case boundedPolicy(q, e.created.Queue).Bounded():
			return skip
		case r == nil || r.status == lane.OutboxPublished:
			return take
		case r.dead():
			return skip
		default:
			ref.OutboxID = eventID(e.id, r.sequence)
			return take
		}
	})
}

// ListRunsNeedingRedelivery returns queued runs whose published wakeup counts as lost, and those that waited for a slot
// of a queue that has no limit any more. It leaves q.Bounded out: what is lost there is found when its reservation is
// over.
func (s *Storage) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingRedelivery", q, nil, func(ix *indexes) []*ordered {
		return []*ordered{&ix.redeliveries, &ix.undelivered}
	}, func(_ *environment, e *entry, _ *lane.RunRef) verdict {
		if boundedPolicy(q, e.created.Queue).Bounded() {
			return skip
		}
		return take
	})
}

// ListRunsNeedingCancellationFinalization returns runs whose cancellation was requested and whose lease is over.
func (s *Storage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	cancelling := ofStatus(runlane.StatusCancellationRequested)
	return s.scan(ctx, "ListRunsNeedingCancellationFinalization", q, cancelling, nil, nil)
}

// scan pages the runs of some kinds, or of other indexes, that are due at q.At, in due order. refine may complete or skip
// a row.
func (s *Storage) scan(
	ctx context.Context, method string, q *lane.DueQuery, of func(kind) bool, others func(*indexes) []*ordered,
	refine func(*environment, *entry, *lane.RunRef) verdict,
) (*runlane.Page[lane.RunRef], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	scope := newScope(method, q.Environment, dueFilter(q)...)
	limit, after, err := openPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env, now := s.find(q.Environment), at(q.At)
	if env == nil {
		return &runlane.Page[lane.RunRef]{}, nil
	}
	var sets []*ordered
	if of != nil {
		sets = env.lists(&choice{of: of, wants: q.Wants})
	} else {
		sets = env.sets(others)
	}
	return fillPage(ascend(sets, after.place()), scope, limit, 0, func(i item) (lane.RunRef, verdict) {
		i.entry = i.entry.view() // of a finished run, which may be packed
		e := i.entry
		switch {
		case i.at > now:
			return lane.RunRef{}, stop
		case !q.Wants(e.created.Queue) || e.underway(now, q.Patience):
			return lane.RunRef{}, skip
		}
		ref := i.ref()
		if refine == nil {
			return ref, take
		}
		v := refine(env, e, &ref)
		return ref, v
	}), nil
}

// ref is the run as scans show it.
func (i item) ref() lane.RunRef {
	e := i.entry
	return lane.RunRef{
		RunKey:         lane.RunKey{Environment: e.environment, RunID: e.id},
		Queue:          e.created.Queue,
		ConcurrencyKey: e.created.ConcurrencyKey,
		Status:         e.state.status,
		AvailableAt:    i.at.time(),
		Sequence:       e.state.sequence,
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

// wait is what a wakeup on its way is for: since when, and whether a timer of the transport sends it.
type wait struct {
	kind waitKind
	due  millis
}

type waitKind byte

const (
	noWakeup waitKind = iota
	wakeupUnderway
	delayedWakeup
)

// longestDelay is the longest wait that a transport's own delay covers.
const longestDelay = 15 * time.Minute

// awaited tells which wakeup is on its way to the run, if any:
//
//	queued                         the wakeup that a publisher has claimed or published
//	waiting, wakeup published      that one
//	waiting for up to 15 minutes   the delayed wakeup that the transport's timer sends, unless something else may end
//	                               the wait
//	owned by a worker              the wakeup that its claim answered
func (e *entry) awaited() wait {
	s := &e.state
	switch {
	case s.status == runlane.StatusQueued:
		if r := e.liveRow(); r != nil && (r.status == lane.OutboxClaimed || r.status == lane.OutboxPublished) {
			return wait{wakeupUnderway, e.due.at}
		}
	case s.status.Waiting():
		if r := e.liveRow(); r != nil && r.status == lane.OutboxPublished {
			return wait{wakeupUnderway, r.since}
		}
		if s.waiting.Timed() && s.runAt.since(s.updatedAt) <= longestDelay {
			return wait{delayedWakeup, s.runAt}
		}
	case s.status.Owned():
		return e.woken
	}
	return wait{}
}

// wakeupOf is the wakeup that a claim answers. It is delivered again if the owner dies, so patience with the wakeup
// covers the owner's lease too. There is none for the claim of a poll worker, and none if the lease ends before the
// wakeup's due time.
func (e *entry) wakeupOf(c *lane.ClaimCommand) wait {
	awaited := e.awaited()
	if !c.ByWakeup || awaited.due > at(c.Projected.Lease.ExpiresAt) {
		return wait{}
	}
	return awaited
}

// underway reports whether, within the query's patience, a wakeup is on its way to the run or a worker answered one.
func (e *entry) underway(now millis, patience lane.Patience) bool {
	switch awaited := e.awaited(); awaited.kind {
	case wakeupUnderway:
		return awaited.due > now.add(-patience.Queued)
	case delayedWakeup:
		return !slices.Contains(patience.Undelayed, e.created.Queue) && awaited.due > now.add(-patience.ShortWait)
	default:
		return false
	}
}
