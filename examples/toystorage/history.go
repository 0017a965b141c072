package toystorage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// ListRunEvents pages one run's history. A run that does not exist has none.
func (s *Storage) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	// only ever grows: a copy of the slice will do
	events := s.runs[keyAtRest(lane.RunKey{Environment: q.Environment, RunID: q.RunID})].events
	s.mu.Unlock()
	var rows []row[runlane.EventRecord]
	for _, r := range events {
		place := r.Sequence
		if q.Descending {
			place = math.MaxInt64 - place
		}
		rows = append(rows, row[runlane.EventRecord]{number(place), r.Clone()})
	}
	return page(&q.PageQuery, fmt.Sprintf("ListRunEvents %q %q %t", q.Environment.Name(), q.RunID, q.Descending), rows)
}

// ListRuns pages summaries: active runs by when they next need attention, then finished ones, newest first.
func (s *Storage) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []row[runlane.RunSummary]
	for key, stored := range s.runs {
		if key.Environment.Name() == q.Environment.Name() && matches(q, stored.run) {
			rows = append(rows, row[runlane.RunSummary]{placeOf(stored.run), stored.run.Clone().Summary()})
		}
	}
	request := fmt.Sprintf(
		"ListRuns %q %q %q %q %q %q",
		q.Environment.Name(),
		q.Statuses,
		q.TaskID,
		q.Queue,
		q.ScheduleID,
		q.SourceRunID,
	)
	return page(&q.PageQuery, request, rows)
}

func matches(q *lane.RunQuery, run *runlane.Run) bool {
	return (len(q.Statuses) == 0 || slices.Contains(q.Statuses, run.Status)) &&
		(q.TaskID == "" || q.TaskID == run.TaskID) &&
		(q.Queue == "" || q.Queue == run.Queue) && (q.ScheduleID == "" || q.ScheduleID == run.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == run.Source.RunID)
}

// placeOf is where a run stands in the list: the id tells runs of one instant apart.
func placeOf(run *runlane.Run) string {
	if run.Status.Terminal() {
		return "finished " + number(math.MaxInt64-run.FinishedAt.UnixMilli()) + " " + string(run.ID)
	}
	attention, runnable := lane.RunnableAt(run)
	if !runnable {
		attention, _ = lane.CancellationFinalizationAt(run)
	}
	return "active " + number(attention.UnixMilli()) + " " + string(run.ID)
}

// number is n as text that sorts like n, which is not negative.
func number(n int64) string { return fmt.Sprintf("%019d", n) }

// row is an item and its place in the list: places are unique and sort as text.
type row[T any] struct {
	place string
	item  T
}

// page cuts one page out of all rows. Its cursor is the place of its last row, so that rows which come and go elsewhere
// neither repeat nor hide others, under a seal that only this request has.
func page[T any](q *lane.PageQuery, request string, rows []row[T]) (*runlane.Page[T], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	seal, after, _ := strings.Cut(string(q.After), " ")
	if q.After != "" && seal != sealOf(request, after) {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "the cursor is not one of this list",
			Hint:    "keep filter and order, or begin without a cursor",
		}
	}
	slices.SortFunc(rows, func(a, b row[T]) int { return cmp.Compare(a.place, b.place) })
	result := &runlane.Page[T]{}
	for _, r := range rows {
		if r.place <= after {
			continue
		}
		if len(result.Items) == limit {
			result.Next = runlane.Cursor(sealOf(request, after) + " " + after)
			break
		}
		result.Items, after = append(result.Items, r.item), r.place
	}
	return result, nil
}

func sealOf(request, place string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q", request, place)))
}
