package sqlitelane

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// ListRuns implements [lane.Storage].
func (s *Storage) ListRuns(ctx context.Context, q *lane.RunQuery) (page *runlane.Page[runlane.RunSummary], err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.RunsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	judge := func(i item) (runlane.RunSummary, embedded.Verdict, error) {
		summary := i.Run.Summary()
		return summary, embedded.JudgeListed(q, &summary), nil
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		actives, ends, err := s.listsFor(c, env, q)
		if err != nil {
			return err
		}
		page, err = embedded.FillRuns(scope, limit, after, len(ends) > 0, func(
			part byte, after *embedded.Position, limit int,
		) (*runlane.Page[runlane.RunSummary], error) {
			lists := ends
			if part == embedded.ActivePart {
				lists = actives
			}
			w := newWalk(c, env, q.Environment, after, embedded.BehindAll, part == embedded.FinishedPart, lists...)
			return embedded.FillPage(w.next, scope, limit, part, judge)
		})
		return err
	})
	return page, err
}

// listsFor returns lists that together contain the requested runs and few others.
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

// kindsOf returns the kinds of requested runs. rests reports that waiting runs are found by their rests instead.
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
