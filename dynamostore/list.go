package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxListRows bounds the rows that one page examines.
const maxListRows = 1000

// The parts of the list of runs, in its order.
const (
	timedRuns    = iota // active ones, by when somebody has to look
	slotlessRuns        // active ones that wait for a slot, by partition
	finishedRuns        // newest first
	listParts
)

// listPosition resumes a list within one of its parts.
type listPosition struct {
	Part int           `json:"n"`
	At   indexPosition `json:"a"`
}

// listing is one page in the making.
type listing struct {
	*lane.RunQuery
	limit    int
	examined int
	items    []runlane.RunSummary

	walks [listParts]*indexWalk      // nil: not wanted, or behind the position
	known map[runlane.RunID]*runItem // what was read ahead; nil for a run that is gone
}

// ListRuns implements lane.Storage. Active runs are read strongly behind their markers; finished ones are shown from the index.
func (s *Store) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("runs %s %q %q %q %q %q", q.Environment.Name(), q.Statuses, q.TaskID, q.Queue, q.ScheduleID, q.SourceRunID)
	var at listPosition
	if err := openCursor(q.After, scope, &at); err != nil {
		return nil, err
	}
	l := &listing{RunQuery: q, limit: limit, known: map[runlane.RunID]*runItem{}}
	if err := s.readAhead(ctx, l, at); err != nil {
		return nil, err
	}
	for part, walk := range l.walks {
		if walk == nil {
			continue
		}
		if len(l.items) == limit || l.examined == maxListRows {
			return l.page(sealCursor(scope, listPosition{Part: part})), nil
		}
		examined, stopped, more, err := walk.show(ctx, maxListRows-l.examined, func(rows []indexRow) (int, bool, error) {
			if part == finishedRuns {
				return l.takeFinished(rows)
			}
			return s.listActive(ctx, l, rows)
		})
		if err != nil {
			return nil, err
		}
		if more {
			return l.page(sealCursor(scope, listPosition{part, stopped})), nil
		}
		l.examined += examined
	}
	return l.page(""), nil
}

func (l *listing) page(next runlane.Cursor) *runlane.Page[runlane.RunSummary] {
	return &runlane.Page[runlane.RunSummary]{Items: l.items, Next: next}
}

// wants reports whether a part can hold runs of the wanted statuses.
func (l *listing) wants(part int) bool {
	return len(l.Statuses) == 0 || slices.ContainsFunc(l.Statuses, func(status runlane.Status) bool {
		switch part {
		case finishedRuns:
			return status.Terminal()
		case slotlessRuns: // running and cancelled runs have a time
			return status.Active() && status != runlane.StatusRunning && status != runlane.StatusCancellationRequested
		default:
			return status.Active()
		}
	})
}

func (l *listing) span(part int, shards shardCounts) *span {
	if part == finishedRuns {
		statuses := slices.DeleteFunc(terminalStatuses(), func(status runlane.Status) bool {
			return len(l.Statuses) > 0 && !slices.Contains(l.Statuses, status)
		})
		newestFirst := doneSpan(l.Environment, statuses, shards, beyondKeys)
		newestFirst.backwards = true
		return newestFirst
	}
	kinds := []markerKind{deliverable, unpublished, deadLetter, waiting, parked, leased}
	if part == slotlessRuns {
		kinds = []markerKind{slotless}
	}
	sp := dueSpan()
	for _, kind := range kinds {
		for shard := range shards.Read {
			sp.partitions = append(sp.partitions, partition{duePartition(l.Environment, kind, shard), beforeKeys, beyondKeys})
		}
	}
	return sp
}

func terminalStatuses() []runlane.Status {
	return []runlane.Status{runlane.StatusCancelled, runlane.StatusFailed, runlane.StatusSucceeded}
}

// doneSpan holds the finished runs of the statuses up to a key, oldest first.
func doneSpan(e runlane.Environment, statuses []runlane.Status, shards shardCounts, until string) *span {
	sp := &span{Index: indexes[1], sk: skRun}
	for _, status := range statuses {
		for shard := range shards.Read {
			sp.partitions = append(sp.partitions, partition{donePartition(e, status, shard), beforeKeys, until})
		}
	}
	return sp
}

func (l *listing) matches(r runlane.RunSummary) bool {
	return (len(l.Statuses) == 0 || slices.Contains(l.Statuses, r.Status)) && (l.TaskID == "" || l.TaskID == r.TaskID) &&
		(l.Queue == "" || l.Queue == r.Queue) && (l.ScheduleID == "" || l.ScheduleID == r.Source.ScheduleID) &&
		(l.SourceRunID == "" || l.SourceRunID == r.Source.RunID)
}

// take appends a run that matches; enough tells that the page is full.
func (l *listing) take(r runlane.RunSummary) (enough bool) {
	if l.matches(r) {
		l.items = append(l.items, r)
	}
	return len(l.items) == l.limit
}

// minBatch is how many runs are read at once at least: a filter may let few of them through.
const minBatch = 25

// listActive shows the runs of markers. Rows of other queues are passed over by their key alone; rows whose runs are gone, finished
// or have another marker are stale.
func (s *Store) listActive(ctx context.Context, l *listing, rows []indexRow) (taken int, enough bool, err error) {
	rows = rows[:min(len(rows), l.atLeast(len(l.items)))]
	ids := make([]runlane.RunID, len(rows))
	for i, row := range rows {
		ids[i] = l.runOf(row)
	}
	if err := s.know(ctx, l, ids); err != nil {
		return 0, false, err
	}
	for i, row := range rows {
		r := l.known[ids[i]]
		if r != nil && r.due() == (dueKey{row.Partition, row.Sort}) && l.take(r.run().Summary()) {
			return i + 1, true, nil
		}
	}
	return len(rows), false, nil
}

// runOf is the run of a marker; "" where the key alone says that it is not wanted.
func (l *listing) runOf(row indexRow) runlane.RunID {
	if due, ok := parseDueRow(row.item); ok && (l.Queue == "" || l.Queue == due.queue) {
		return due.run
	}
	return ""
}

// takeFinished shows finished runs as the index has them.
func (l *listing) takeFinished(rows []indexRow) (taken int, enough bool, err error) {
	for i, row := range rows {
		r, err := unmarshalRun(row.item)
		if err != nil {
			return i, false, err
		}
		r.Status = strings.Split(row.Partition, ":")[1]
		finished, _, _ := strings.Cut(row.Sort, ":")
		r.FinishedAt = parseMillis(finished)
		if l.take(r.run().Summary()) {
			return i + 1, true, nil
		}
	}
	return len(rows), false, nil
}
