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
	shards, err := s.shardCounts(ctx, q.Environment)
	if err != nil {
		return nil, err
	}
	l := &listing{RunQuery: q, limit: limit}
	for part := at.Part; part < listParts; part++ {
		if !l.wants(part) {
			continue
		}
		if len(l.items) == limit || l.examined == maxListRows {
			return l.page(sealCursor(scope, listPosition{Part: part})), nil
		}
		examined, stopped, more, err := s.walkIndex(ctx, "list runs", l.span(part, shards), at.At, chunkOf(limit), maxListRows-l.examined,
			func(rows []indexRow) (int, bool, error) {
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
		at.At = indexPosition{}
	}
	return l.page(""), nil
}

// chunkOf is how many rows of a shard are read at once for a page: runs are spread evenly over eight or more.
func chunkOf(limit int) int { return max(limit/4, 16) }

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
	sp := &span{index: indexDone, hash: attrDoneP, sort: attrDoneA}
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
	rows = rows[:min(len(rows), max(l.limit-len(l.items), minBatch))]
	var ids []runlane.RunID
	keys := make([]lane.RunKey, len(rows))
	for i, row := range rows {
		due, ok := parseDueRow(row.item)
		if ok && (l.Queue == "" || l.Queue == due.queue) {
			keys[i] = lane.RunKey{Environment: l.Environment, RunID: due.run}
			ids = append(ids, due.run)
		}
	}
	runs, err := s.readRuns(ctx, l.Environment, ids)
	if err != nil {
		return 0, false, err
	}
	for i, row := range rows {
		r := runs[keys[i].RunID]
		if r != nil && r.due() == (dueKey{row.Partition, row.Sort}) && l.take(r.run().Summary()) {
			return i + 1, true, nil
		}
	}
	return len(rows), false, nil
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
