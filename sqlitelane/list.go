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
		finished := func(after *pages.Position, limit int) (*runlane.Page[runlane.RunSummary], error) {
			w := newWalk(c, env, q.Environment, after, behindAll, true,
				runsOf(record.Succeeded), runsOf(record.Failed), runsOf(record.Cancelled))
			return fillPage(w, scope, limit, finishedPart, judge)
		}
		if after != nil && after.Part == finishedPart {
			page, err = finished(after, limit)
			return err
		}
		w := newWalk(c, env, q.Environment, after, behindAll, false,
			runsOf(record.Queued), runsOf(record.Waiting), runsOf(record.Leased), runsOf(record.Cancelling))
		page, err = fillPage(w, scope, limit, activePart, judge)
		if err != nil || page.Next != "" || !wantsFinished(q) {
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

// wantsFinished tells whether the second part can have what is asked for: a list of active runs reads no finished one.
func wantsFinished(q *lane.RunQuery) bool {
	return q.Waiting == "" &&
		(len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, runlane.Status.Terminal))
}

func matches(q *lane.RunQuery, run *runlane.Run) bool {
	return (len(q.Statuses) == 0 || slices.Contains(q.Statuses, run.Status)) &&
		(q.TaskID == "" || q.TaskID == run.TaskID) &&
		(q.Queue == "" || q.Queue == run.Queue) &&
		(q.ScheduleID == "" || q.ScheduleID == run.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == run.Source.RunID) &&
		(q.Waiting == "" || run.Waiting.Has(q.Waiting))
}
