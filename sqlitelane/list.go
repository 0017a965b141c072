package sqlitelane

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/pages"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// The two parts of the list of runs.
const (
	activePart byte = iota
	finishedPart
)

// ListRuns pages summaries: active runs by when they next need attention, then finished ones newest first.
func (s *Storage) ListRuns(ctx context.Context, q *lane.RunQuery) (page *runlane.Page[runlane.RunSummary], err error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	statuses := make([]string, len(q.Statuses))
	for i, status := range q.Statuses {
		statuses[i] = string(status)
	}
	scope := pages.NewScope("ListRuns", q.Environment,
		strings.Join(statuses, ","), string(q.TaskID), string(q.Queue), string(q.ScheduleID), string(q.SourceRunID),
		string(q.Waiting))
	limit, after, err := pages.Open(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	judge := func(i item) (runlane.RunSummary, verdict, error) {
		if !matches(q, &i.Run) {
			return runlane.RunSummary{}, skip, nil
		}
		return i.Run.Summary(), take, nil
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		actives, ended, err := s.listsFor(c, env, q)
		if err != nil {
			return err
		}
		finished := func(after *pages.Position, limit int) (*runlane.Page[runlane.RunSummary], error) {
			w := newWalk(c, env, q.Environment, after, behindAll, true, ended...)
			return fillPage(w, scope, limit, finishedPart, judge)
		}
		if after != nil && after.Part == finishedPart {
			page, err = finished(after, limit)
			return err
		}
		w := newWalk(c, env, q.Environment, after, behindAll, false, actives...)
		page, err = fillPage(w, scope, limit, activePart, judge)
		if err != nil || page.Next != "" || len(ended) == 0 {
			return err
		}
		if len(page.Items) == limit { // nothing is left of the first part; the second begins on its own page
			page.Next = scope.Cursor(pages.Position{Part: finishedPart, At: int64(behindAll)})
			return nil
		}
		rest, err := finished(nil, limit-len(page.Items))
		if err != nil {
			return err
		}
		page = &runlane.Page[runlane.RunSummary]{Items: append(page.Items, rest.Items...), Next: rest.Next}
		return nil
	})
	return page, err
}

// listsFor are the lists that together have what is asked for, and little else: the first part of the pages and the
// second.
func (s *Storage) listsFor(c *file.Conn, env int64, q *lane.RunQuery) (active, finished []list, err error) {
	by := choice{task: q.TaskID}
	if q.Queue != "" {
		if by.queue, err = s.names.known(c, string(q.Queue)); err != nil || by.queue == 0 {
			return nil, nil, err
		}
	}
	actives, ends, rests := kindsOf(q)
	column, value := "", ""
	switch {
	case q.SourceRunID != "":
		column, value = "source", string(q.SourceRunID)
	case q.ScheduleID != "":
		column, value = "schedule", string(q.ScheduleID)
	}
	if column != "" {
		if rests {
			actives = append(actives, record.Waiting)
		}
		return append(runsWith(column, value, actives...), olderOf(actives...)...),
			append(runsWith(column, value, ends...), olderOf(ends...)...), nil
	}
	by.value = ofKinds(slices.Concat(actives, ends)...)
	found, err := s.choose(c, env, byKind, &by)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range found {
		if slices.Contains(ends, record.Kind(l.value)) {
			finished = append(finished, inGroup(byKind, l))
		} else {
			active = append(active, inGroup(byKind, l))
		}
	}
	if !rests {
		return active, finished, nil
	}
	by.value = func(rest int64) bool { return record.RestIs(rest, q.Statuses, q.Waiting) }
	resting, err := s.listsOf(c, env, byRest, &by)
	return slices.Concat(active, resting, olderOf(record.Waiting)), finished, err
}

// kindsOf are the kinds of runs that are asked for. rests says that those of kind Waiting are found by their rests.
func kindsOf(q *lane.RunQuery) (active, finished []record.Kind, rests bool) {
	asked := func(s runlane.Status) bool { return len(q.Statuses) == 0 || slices.Contains(q.Statuses, s) }
	waiting, other := 0, 0
	for _, status := range runlane.Statuses() {
		switch {
		case status.Waiting() && asked(status):
			waiting++
		case status.Waiting():
			other++
		case q.Waiting != "" || !asked(status):
		case status.Terminal():
			finished = append(finished, record.Finished[status])
		default:
			active = append(active, record.Active[status])
		}
	}
	if waiting > 0 && other == 0 && q.Waiting == "" {
		return append(active, record.Waiting), finished, false
	}
	return active, finished, waiting > 0
}

func matches(q *lane.RunQuery, run *runlane.Run) bool {
	return (len(q.Statuses) == 0 || slices.Contains(q.Statuses, run.Status)) &&
		(q.TaskID == "" || q.TaskID == run.TaskID) &&
		(q.Queue == "" || q.Queue == run.Queue) &&
		(q.ScheduleID == "" || q.ScheduleID == run.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == run.Source.RunID) &&
		(q.Waiting == "" || run.Waiting.Has(q.Waiting))
}
