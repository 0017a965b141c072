package memlane

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ListRuns implements [lane.Storage].
func (s *Storage) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.RunsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return &runlane.Page[runlane.RunSummary]{}, nil
	}
	judge := func(i item) (runlane.RunSummary, embedded.Verdict, error) {
		summary := i.entry.view().summary()
		return summary, embedded.JudgeListed(q, &summary), nil
	}
	lists := func(of func(kind) bool) []*ordered {
		return env.lists(&choice{
			of: func(k kind) bool {
				return of(k) && k.waitsFor(q.Waiting) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, k.is()))
			},
			queue:    q.Queue,
			task:     q.TaskID,
			schedule: q.ScheduleID,
			source:   q.SourceRunID,
		})
	}
	finished := lists(func(k kind) bool { return k.is().Terminal() })
	return embedded.FillRuns(scope, limit, after, len(finished) > 0, func(
		part byte, after *embedded.Position, limit int,
	) (*runlane.Page[runlane.RunSummary], error) {
		w := descend(finished, placeOf(after))
		if part == embedded.ActivePart {
			w = ascend(lists(active), placeOf(after))
		}
		return embedded.FillPage(w.pop, scope, limit, part, judge)
	})
}

// ListRunEvents implements [lane.Storage].
func (s *Storage) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.EventsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[runlane.EventRecord]{}
	h, env := s.lockRun(q.Environment, q.RunID)
	defer h.unlock()
	e := env.run(q.RunID)
	if e == nil {
		return page, nil
	}
	events := e.history()
	next, by := 0, 1
	if q.Descending {
		next, by = len(events)-1, -1
	}
	if after != nil {
		next = int(after.At) - 1 + by // sequences start at 1
	}
	for ; next >= 0 && next < len(events); next += by {
		if len(page.Items) == limit {
			page.Next = scope.Cursor(embedded.Position{At: embedded.Millis(next + 1 - by)})
			break
		}
		page.Items = append(page.Items, events[next].record(e, int64(next)+1))
	}
	return page, nil
}
