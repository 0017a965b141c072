package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// pagesHoldNothing answers each scan with pages that are empty and have a cursor, then with what the scan finds.
type pagesHoldNothing struct{ lane.Storage }

const emptyPages = 3

func (s pagesHoldNothing) Unwrap() lane.Storage { return s.Storage }

func afterNothing(
	ctx context.Context,
	q *lane.DueQuery,
	list func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error),
) (*runlane.Page[lane.RunRef], error) {
	const cursor = "empty page "
	n := 0
	if _, err := fmt.Sscanf(string(q.After), cursor+"%d", &n); err != nil && q.After != "" {
		return list(ctx, q)
	}
	if n < emptyPages {
		return &runlane.Page[lane.RunRef]{Next: runlane.Cursor(fmt.Sprint(cursor, n+1))}, nil
	}
	behind := *q
	behind.After = ""
	return list(ctx, &behind)
}

func (s pagesHoldNothing) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return afterNothing(ctx, q, s.Storage.ListRunsNeedingCancellationFinalization)
}

func (s pagesHoldNothing) ListRunsNeedingDelivery(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return afterNothing(ctx, q, s.Storage.ListRunsNeedingDelivery)
}

func (s pagesHoldNothing) ListRunsNeedingRedelivery(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return afterNothing(ctx, q, s.Storage.ListRunsNeedingRedelivery)
}

func (s pagesHoldNothing) ListRunsNeedingDispatch(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return afterNothing(ctx, q, s.Storage.ListRunsNeedingDispatch)
}

// The rows that a storage skips (rows of other queues, rows that it moves elsewhere) may fill more than a page.
func tickLooksBehind(t *testing.T, h Harness) {
	task, handler := job("scenario.behind", nil, succeed)
	slotted, bounded := limited(1, nil, succeed)
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler, bounded}}, func(s *scene) {
		s.storage.Storage = pagesHoldNothing{s.storage.Storage}
	})
	cancelled, dead := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	holder := s.trigger(slotted.With(jobPayload{}), nil)
	s.die(cancelled.ID)
	s.change(cancelled.ID, &runlane.RunCancellationRequested{})
	s.die(dead.ID)
	s.die(holder.ID)
	s.wantPublished(cancelled, dead, holder)
	s.clock.Advance(3 * time.Minute)
	s.until("what lies behind is found", func() bool {
		s.tick()
		return s.get(cancelled.ID).Status == runlane.StatusCancelled && s.get(dead.ID).Status == runlane.StatusQueued &&
			s.get(holder.ID).Status == runlane.StatusQueued
	})
	s.wantStatus(s.execute(s.get(dead.ID)), runlane.StatusSucceeded)
	s.wantStatus(s.execute(s.get(holder.ID)), runlane.StatusSucceeded)
}
