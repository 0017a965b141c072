package memlane

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// The two parts of the list of runs.
const (
	activePart byte = iota
	finishedPart
)

// ListRuns pages summaries: active runs by when they next need attention, then finished ones newest first.
func (s *Storage) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	statuses := make([]string, len(q.Statuses))
	for i, status := range q.Statuses {
		statuses[i] = string(status)
	}
	scope := newScope("ListRuns", q.Environment,
		strings.Join(statuses, ","), string(q.TaskID), string(q.Queue), string(q.ScheduleID), string(q.SourceRunID),
		string(q.Waiting))
	limit, after, err := openPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return &runlane.Page[runlane.RunSummary]{}, nil
	}
	judge := func(i item) (runlane.RunSummary, verdict) {
		e := i.entry.view()
		if !matches(q, e) {
			return runlane.RunSummary{}, skip
		}
		return e.summary(), take
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
	if after != nil && after.part == finishedPart {
		return fillPage(descend(finished, after.place()), scope, limit, finishedPart, judge), nil
	}
	page := fillPage(ascend(lists(active), after.place()), scope, limit, activePart, judge)
	if page.Next != "" || len(finished) == 0 {
		return page, nil
	}
	if len(page.Items) == limit { // nothing is left of the first part; the second begins on its own page
		page.Next = scope.cursor(finishedPart, lastPosition)
		return page, nil
	}
	rest := fillPage(descend(finished, nil), scope, limit-len(page.Items), finishedPart, judge)
	return &runlane.Page[runlane.RunSummary]{Items: append(page.Items, rest.Items...), Next: rest.Next}, nil
}

// lastPosition is behind every item.
var lastPosition = position{at: 1<<63 - 1}

func matches(q *lane.RunQuery, e *entry) bool {
	c := e.created
	return (len(q.Statuses) == 0 || slices.Contains(q.Statuses, e.state.status)) &&
		(q.TaskID == "" || q.TaskID == c.TaskID) &&
		(q.Queue == "" || q.Queue == c.Queue) &&
		(q.ScheduleID == "" || q.ScheduleID == c.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == c.Source.RunID) &&
		(q.Waiting == "" || e.state.waiting.Has(q.Waiting))
}

// ListRunEvents pages one run's history in sequence order. A run that does not exist has no events.
func (s *Storage) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	order := "ascending"
	if q.Descending {
		order = "descending"
	}
	scope := newScope("ListRunEvents", q.Environment, string(q.RunID), order)
	limit, after, err := openPage(&q.PageQuery, scope)
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
		next = int(after.at) - 1 + by // a sequence counts from 1
	}
	for ; next >= 0 && next < len(events); next += by {
		if len(page.Items) == limit {
			page.Next = scope.cursor(0, position{at: millis(next + 1 - by)})
			break
		}
		page.Items = append(page.Items, events[next].record(e, int64(next)+1))
	}
	return page, nil
}
