package memlane

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ListRunnableRuns returns what a worker may claim. Of the runs in q.Bounded these are all runs with a slot, and as
// many others as there are free slots.
func (s *Storage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	left := room{q: q}
	return s.scan(ctx, "ListRunnableRuns", q, func(k kind) bool {
		return k.is().Active() && k.is() != runlane.StatusCancellationRequested
	}, nil, func(env *environment, e *entry, _ *lane.RunRef) embedded.Verdict {
		if !left.allows(env, e) {
			return embedded.Skip
		}
		return embedded.Take
	})
}

// ListRunsNeedingDelivery returns runs that need a fresh delivery request, q.Bounded left out. A scheduled run whose
// row is not published yet comes with that row; one whose row was given up waits for the operator.
func (s *Storage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingDelivery", q, func(k kind) bool {
		return k.is().Waiting() || k.is() == runlane.StatusRunning
	}, nil, func(_ *environment, e *entry, ref *lane.RunRef) embedded.Verdict {
		r := e.liveRow()
		switch {
		case embedded.BoundedPolicy(q, e.created.Queue).Bounded():
			return embedded.Skip
		case r == nil || r.status == lane.OutboxPublished:
			return embedded.Take
		case r.dead():
			return embedded.Skip
		default:
			ref.OutboxID = embedded.EventID(e.id, r.sequence)
			return embedded.Take
		}
	})
}

// ListRunsNeedingRedelivery returns queued runs whose published wakeup counts as lost, and those that waited for a slot
// of a queue that has no limit any more. It leaves q.Bounded out: what is lost there is found when its reservation is
// over.
func (s *Storage) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingRedelivery", q, nil, func(ix *indexes) []*ordered {
		return []*ordered{&ix.redeliveries, &ix.undelivered}
	}, func(_ *environment, e *entry, _ *lane.RunRef) embedded.Verdict {
		if embedded.BoundedPolicy(q, e.created.Queue).Bounded() {
			return embedded.Skip
		}
		return embedded.Take
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
	refine func(*environment, *entry, *lane.RunRef) embedded.Verdict,
) (*runlane.Page[lane.RunRef], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope(method, q.Environment, embedded.DueFilter(q)...)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env, now := s.find(q.Environment), embedded.At(q.At)
	if env == nil {
		return &runlane.Page[lane.RunRef]{}, nil
	}
	var sets []*ordered
	if of != nil {
		sets = env.lists(&choice{of: of, wants: q.Wants})
	} else {
		sets = env.sets(others)
	}
	return embedded.FillPage(ascend(sets, placeOf(after)).pop, scope, limit, 0, func(i item) (lane.RunRef, embedded.Verdict, error) {
		i.entry = i.entry.view() // of a finished run, which may be packed
		e := i.entry
		switch {
		case i.at > now:
			return lane.RunRef{}, embedded.Stop, nil
		case !q.Wants(e.created.Queue) || e.underway(now, q.Patience):
			return lane.RunRef{}, embedded.Skip, nil
		}
		ref := i.ref()
		if refine == nil {
			return ref, embedded.Take, nil
		}
		v := refine(env, e, &ref)
		return ref, v, nil
	})
}

// ref is the run as scans show it.
func (i item) ref() lane.RunRef {
	e := i.entry
	return lane.RunRef{
		RunKey:         lane.RunKey{Environment: e.environment, RunID: e.id},
		Queue:          e.created.Queue,
		ConcurrencyKey: e.created.ConcurrencyKey,
		Status:         e.state.status,
		AvailableAt:    i.at.Time(),
		Sequence:       e.state.sequence,
	}
}

// wait is what a wakeup on its way is for: since when, and whether a timer of the transport sends it.
type wait struct {
	kind waitKind
	due  embedded.Millis
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
		if s.waiting.Timed() && s.runAt.Since(s.updatedAt) <= longestDelay {
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
	if !c.ByWakeup || awaited.due > embedded.At(c.Projected.Lease.ExpiresAt) {
		return wait{}
	}
	return awaited
}

// underway reports whether, within the query's patience, a wakeup is on its way to the run or a worker answered one.
func (e *entry) underway(now embedded.Millis, patience lane.Patience) bool {
	switch awaited := e.awaited(); awaited.kind {
	case wakeupUnderway:
		return awaited.due > now.Add(-patience.Queued)
	case delayedWakeup:
		return !slices.Contains(patience.Undelayed, e.created.Queue) && awaited.due > now.Add(-patience.ShortWait)
	default:
		return false
	}
}
