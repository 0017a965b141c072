package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ListRunnableRuns implements [lane.Storage]. Of q.Bounded it returns all runs with a slot, and as many others as
// there are free slots.
func (s *Storage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	left := room{q: q}
	return s.scan(ctx, runnable, q, func(k kind) bool {
		return k.is().Active() && k.is() != runlane.StatusCancellationRequested
	}, nil, func(env *environment, e *entry, _ *lane.RunRef) embedded.Verdict {
		if !left.allows(env, e) {
			return embedded.Skip
		}
		return embedded.Take
	})
}

// ListRunsNeedingDelivery implements [lane.Storage]. A run with a dead letter waits for an operator.
func (s *Storage) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingDelivery", q, func(k kind) bool {
		return k.is().Waiting() || k.is() == runlane.StatusRunning
	}, nil, func(_ *environment, e *entry, ref *lane.RunRef) embedded.Verdict {
		return embedded.NeedsDelivery(q, e.liveRow(), ref)
	})
}

// ListRunsNeedingRedelivery implements [lane.Storage]. It also returns runs that waited for a slot of a queue that has
// no limit any more. In q.Bounded, the end of a reservation reveals a lost wakeup.
func (s *Storage) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsNeedingRedelivery", q, nil, func(ix *indexes) []*ordered {
		return []*ordered{&ix.redeliveries, &ix.undelivered}
	}, func(_ *environment, e *entry, _ *lane.RunRef) embedded.Verdict {
		return embedded.Unbounded(q, e.created.Queue)
	})
}

// ListRunsNeedingCancellationFinalization implements [lane.Storage].
func (s *Storage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	cancelling := ofStatus(runlane.StatusCancellationRequested)
	return s.scan(ctx, "ListRunsNeedingCancellationFinalization", q, cancelling, nil, nil)
}

const runnable = "ListRunnableRuns"

// scan pages due runs in due order, runnable ones in the order of their ranks, from lists of some kinds or from other indexes. refine may complete or skip a row.
func (s *Storage) scan(
	ctx context.Context, method string, q *lane.DueQuery, of func(kind) bool, others func(*indexes) []*ordered,
	refine func(*environment, *entry, *lane.RunRef) embedded.Verdict,
) (*runlane.Page[lane.RunRef], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.DueScope(method, q)
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
	due := ascend
	if method == runnable {
		due = func(sets []*ordered, after *position) *walk { return rank(sets, after, now) }
	}
	return embedded.FillPage(due(sets, placeOf(after)).popRanked, scope, limit, 0, func(i ranked) (lane.RunRef, embedded.Verdict, error) {
		i.entry = i.entry.view() // a finished run may be packed
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

func (i item) ref() lane.RunRef {
	e := i.entry
	return lane.RunRef{
		RunKey:         lane.RunKey{Environment: e.environment, RunID: e.id},
		Queue:          e.created.Queue,
		ConcurrencyKey: e.created.ConcurrencyKey,
		Priority:       e.created.Priority,
		Status:         e.state.Status,
		AvailableAt:    i.at.Time(),
		Sequence:       e.state.Sequence,
	}
}

func (e *entry) underway(now embedded.Millis, patience lane.Patience) bool {
	return e.outbox.Underway(e.known(), e.created.Queue, now, patience)
}
