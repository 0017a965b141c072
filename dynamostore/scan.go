package dynamostore

import (
	"cmp"
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

// maxScanRows bounds the index rows that one scan examines. The bound reached is a page with a cursor.
const maxScanRows = 2000

// dueRow is an entry of the index due.
type dueRow struct {
	run    runlane.RunID
	key    dueKey
	marker marker
	queue  runlane.QueueName
}

// duePosition is the place behind which a scan resumes: markers in their order, runs within one.
type duePosition struct {
	Due string        `json:"d"`
	Run runlane.RunID `json:"r"`
}

func (p duePosition) compare(other duePosition) int {
	return cmp.Or(strings.Compare(p.Due, other.Due), strings.Compare(string(p.Run), string(other.Run)))
}

func (p duePosition) less(other duePosition) bool { return p.compare(other) < 0 }

func (r dueRow) position() duePosition { return duePosition{r.key.sort, r.run} }

// found is a row whose run was read and looked at.
type found struct {
	row   dueRow
	run   *runItem
	sight sight
}

// examine pages through the rows of the kinds in due order; judge reads their runs and leaves those it wants with their run set.
func (s *Store) examine(
	ctx context.Context, q *lane.DueQuery, what string, kinds []kindBound, keep func(runlane.QueueName) bool,
	judge func([]dueRow) ([]found, error),
) (*runlane.Page[found], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := scanScope(q, what)
	var after duePosition
	if err := openCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	rows, end, more, err := s.dueRows(ctx, q.Environment, kinds, keep, after, limit)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[found]{}
	for len(rows) > 0 {
		batch := rows[:min(len(rows), batchKeys)]
		seen, err := judge(batch)
		if err != nil {
			return nil, err
		}
		rows = rows[len(batch):]
		for i, f := range seen {
			if f.run == nil {
				continue
			}
			page.Items = append(page.Items, f)
			if len(page.Items) == limit && (i+1 < len(seen) || len(rows) > 0 || more) {
				page.Next = sealCursor(scope, f.row.position())
				return page, nil
			}
		}
	}
	if more {
		page.Next = sealCursor(scope, end)
	}
	return page, nil
}

func scanScope(q *lane.DueQuery, what string) string {
	return fmt.Sprint(what, " ", q.Environment.Name(), " ", q.At.UnixMilli(), " ", q.Queues, " ", boundedNames(q.Bounded))
}

func boundedNames(queues []runlane.Queue) []runlane.QueueName {
	var names []runlane.QueueName
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// kindBound asks for the markers of a kind up to a moment.
type kindBound struct {
	kind  markerKind
	until millis
}

// shardRows is what one partition of the index gave. cut tells that there is more behind reach.
type shardRows struct {
	rows  []dueRow
	reach duePosition
	cut   bool
}

// dueRows merges the shards of the kinds in due order, up to where all that were cut reach: behind that, order is not known yet.
// end is where the next page begins; more tells that there may be one.
func (s *Store) dueRows(
	ctx context.Context, e runlane.Environment, kinds []kindBound, keep func(runlane.QueueName) bool, after duePosition, limit int,
) (rows []dueRow, end duePosition, more bool, err error) {
	shards, err := s.shardCounts(ctx, e)
	if err != nil {
		return nil, end, false, err
	}
	parts := make([]shardRows, len(kinds)*shards.Read)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for k, kind := range kinds {
		for shard := range shards.Read {
			group.Go(func() (err error) {
				partition := duePartition(e, kind.kind, shard)
				parts[k*shards.Read+shard], err = s.dueShard(groupCtx, partition, kind.until, keep, after, limit)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, end, false, err
	}
	rows, end, more = mergeShards(parts)
	return rows, end, more, nil
}

func mergeShards(parts []shardRows) (rows []dueRow, end duePosition, more bool) {
	for _, part := range parts {
		rows = append(rows, part.rows...)
		if part.cut && (!more || part.reach.less(end)) {
			end, more = part.reach, true
		}
	}
	slices.SortFunc(rows, func(a, b dueRow) int { return a.position().compare(b.position()) })
	if more {
		rows = slices.DeleteFunc(rows, func(r dueRow) bool { return end.less(r.position()) })
	}
	return rows, end, more
}

// dueShard reads one partition of the index until it has enough rows or examined its share; rows of other queues are dropped
// from the key alone.
func (s *Store) dueShard(
	ctx context.Context, partition string, until millis, keep func(runlane.QueueName) bool, after duePosition, limit int,
) (part shardRows, err error) {
	from := after.Due
	if from == "" {
		from = "0"
	}
	examined := 0
	err = s.query(ctx, "scan", &dynamodb.QueryInput{
		IndexName:                 aws.String(indexDue),
		KeyConditionExpression:    aws.String("#dp = :dp AND #da BETWEEN :from AND :until"),
		ExpressionAttributeValues: item{":dp": text(partition), ":from": text(from), ":until": text(fmt.Sprintf("%013d:\U0010FFFF", until))},
		Limit:                     aws.Int32(int32(max(limit, batchKeys))), //nolint:gosec // bounded by the page limit
	}, func(it item) (bool, error) {
		if len(part.rows) == limit || examined == maxScanRows {
			part.cut = true
			return false, nil
		}
		examined++
		row, ok := parseDueRow(it)
		if !ok {
			return true, nil
		}
		part.reach = row.position()
		if after.less(part.reach) && keep(row.queue) {
			part.rows = append(part.rows, row)
		}
		return true, nil
	})
	return part, err
}

// unbounded keeps the queues that a query asks for, but for bounded ones.
func unbounded(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return anyQueue(q)(queue) && !isBounded(q.Bounded, queue) }
}

// anyQueue keeps the queues that a query asks for.
func anyQueue(q *lane.DueQuery) func(runlane.QueueName) bool {
	return func(queue runlane.QueueName) bool { return q.Queues == nil || slices.Contains(q.Queues, queue) }
}

func isBounded(queues []runlane.Queue, name runlane.QueueName) bool {
	return slices.ContainsFunc(queues, func(q runlane.Queue) bool { return q.Name == name })
}

func parseDueRow(it item) (dueRow, bool) {
	row := dueRow{key: dueKey{textOf(it[attrDueP]), textOf(it[attrDueA])}}
	key, ok1 := parseRunPK(textOf(it[attrPK]))
	m, queue, ok2 := row.key.parse()
	row.run, row.marker, row.queue = key.RunID, m, queue
	return row, ok1 && ok2
}
