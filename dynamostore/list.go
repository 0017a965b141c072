package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxListRows bounds the rows of one shard that a page of finished runs examines.
const maxListRows = 1000

// listPosition resumes a list: among the active runs, whose page has a cursor of its own, or behind a finished one.
type listPosition struct {
	Active   runlane.Cursor `json:"a,omitempty"`
	Finished string         `json:"f,omitempty"`
	Done     bool           `json:"d,omitempty"` // the active runs are behind us
}

// ListRuns implements lane.Storage.
func (s *Store) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := fmt.Sprint("runs ", q.Environment.Name(), " ", q.Statuses, " ", q.TaskID, " ", q.Queue, " ", q.ScheduleID, " ", q.SourceRunID)
	var at listPosition
	if err := openCursor(q.After, scope, &at); err != nil {
		return nil, err
	}
	page := &runlane.Page[runlane.RunSummary]{}
	if !at.Done && wantsStatus(q, runlane.Status.Active) {
		active, next, err := s.listActive(ctx, q, at.Active, limit)
		if err != nil {
			return nil, err
		}
		page.Items = active
		if next != "" {
			page.Next = sealCursor(scope, listPosition{Active: next})
			return page, nil
		}
	}
	if len(page.Items) == limit {
		page.Next = sealCursor(scope, listPosition{Done: true})
		return page, nil
	}
	finished, next, err := s.listFinished(ctx, q, at.Finished, limit-len(page.Items))
	page.Items = append(page.Items, finished...)
	if next != "" {
		page.Next = sealCursor(scope, listPosition{Done: true, Finished: next})
	}
	return page, err
}

func wantsStatus(q *lane.RunQuery, class func(runlane.Status) bool) bool {
	return q.Statuses == nil || slices.ContainsFunc(q.Statuses, class)
}

func matches(q *lane.RunQuery, r runlane.RunSummary) bool {
	return (q.Statuses == nil || slices.Contains(q.Statuses, r.Status)) && (q.TaskID == "" || q.TaskID == r.TaskID) &&
		(q.Queue == "" || q.Queue == r.Queue) && (q.ScheduleID == "" || q.ScheduleID == r.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == r.Source.RunID)
}

// listActive pages through the markers of every kind, in the order of their moments.
func (s *Store) listActive(ctx context.Context, q *lane.RunQuery, after runlane.Cursor, limit int) ([]runlane.RunSummary, runlane.Cursor, error) {
	due := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: q.Environment, Limit: limit, After: after}}
	if q.Queue != "" {
		due.Queues = []runlane.QueueName{q.Queue}
	}
	var kinds []kindBound
	for _, kind := range []markerKind{deliverable, unpublished, deadLetter, waiting, parked, leased} {
		kinds = append(kinds, kindBound{kind, farFuture})
	}
	page, err := s.examine(ctx, due, "active", kinds, anyQueue(due), func(rows []dueRow) ([]found, error) {
		seen, err := s.readRows(ctx, q.Environment, rows)
		for i := range seen {
			if seen[i].run != nil && !matches(q, seen[i].run.run().Summary()) {
				seen[i].run = nil
			}
		}
		return seen, err
	})
	if err != nil {
		return nil, "", err
	}
	var summaries []runlane.RunSummary
	for _, f := range page.Items {
		summaries = append(summaries, f.run.run().Summary())
	}
	return summaries, page.Next, nil
}

// finishedShard is what one partition of the index done gave, newest first.
type finishedShard struct {
	rows  []finishedRow
	reach string
	cut   bool
}

type finishedRow struct {
	key     string
	summary runlane.RunSummary
}

// listFinished merges the shards of the terminal statuses, newest first, from the index alone.
func (s *Store) listFinished(ctx context.Context, q *lane.RunQuery, before string, limit int) ([]runlane.RunSummary, string, error) {
	shards, err := s.shardCounts(ctx, q.Environment)
	if err != nil {
		return nil, "", err
	}
	var partitions []string
	for _, status := range []runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled} {
		if q.Statuses != nil && !slices.Contains(q.Statuses, status) {
			continue
		}
		for shard := range shards.Read {
			partitions = append(partitions, donePartition(q.Environment, status, shard))
		}
	}
	parts := make([]finishedShard, len(partitions))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for i, partition := range partitions {
		group.Go(func() (err error) {
			parts[i], err = s.finishedShard(groupCtx, q, partition, before, limit)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, "", err
	}
	var rows []finishedRow
	end := ""
	for _, part := range parts {
		rows = append(rows, part.rows...)
		if part.cut {
			end = max(end, part.reach)
		}
	}
	slices.SortFunc(rows, func(a, b finishedRow) int { return strings.Compare(b.key, a.key) })
	rows = slices.DeleteFunc(rows, func(r finishedRow) bool { return r.key < end })
	if len(rows) > limit {
		rows, end = rows[:limit], rows[limit-1].key
	}
	summaries := make([]runlane.RunSummary, len(rows))
	for i, row := range rows {
		summaries[i] = row.summary
	}
	return summaries, end, nil
}

func (s *Store) finishedShard(ctx context.Context, q *lane.RunQuery, partition, before string, limit int) (part finishedShard, err error) {
	if before == "" {
		before = fmt.Sprintf("%013d:", farFuture)
	}
	examined := 0
	err = s.query(ctx, "list finished", &dynamodb.QueryInput{
		IndexName: aws.String(indexDone), KeyConditionExpression: aws.String("#fp = :fp AND #fa < :fa"),
		ExpressionAttributeValues: item{":fp": text(partition), ":fa": text(before)}, ScanIndexForward: aws.Bool(false),
		Limit: aws.Int32(int32(max(limit, batchKeys))), //nolint:gosec // bounded by the page limit
	}, func(it item) (bool, error) {
		if len(part.rows) == limit || examined == maxListRows {
			part.cut = true
			return false, nil
		}
		examined++
		r, err := unmarshalRun(it)
		if err != nil {
			return false, err
		}
		r.Status = strings.Split(r.DoneP, ":")[1]
		summary := r.run().Summary()
		if at, _, ok := strings.Cut(r.DoneA, ":"); ok {
			summary.FinishedAt = parseMillis(at).time()
		}
		if part.reach = r.DoneA; matches(q, summary) {
			part.rows = append(part.rows, finishedRow{r.DoneA, summary})
		}
		return true, nil
	})
	return part, err
}
