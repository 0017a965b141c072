package dynamostore

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"
)

// span is a part of an index: partitions that are merged in the order of their sort keys. Ties are in the order of the partitions,
// and within one in the index's own order, which is stable but nobody else's business: so a position resumes exactly, however
// many rows share a key.
type span struct {
	index       string
	hash, sort  string // attributes
	partitions  []string
	from, until string // bounds of the sort key, inclusive
	backwards   bool
}

// indexPosition is a row's place. The zero value is before every row.
type indexPosition struct {
	Partition string `json:"p,omitempty"`
	Sort      string `json:"s,omitempty"`
	PK        string `json:"k,omitempty"`
}

type indexRow struct {
	indexPosition
	item item
}

// order is the order of a span; rows of one partition and key are equal to it.
func (sp *span) order(a, b indexPosition) int {
	bySort := strings.Compare(a.Sort, b.Sort)
	if sp.backwards {
		bySort = -bySort
	}
	if bySort != 0 {
		return bySort
	}
	return strings.Compare(a.Partition, b.Partition)
}

// visitor looks at rows and tells how many it took, from the first on: at least one, unless it has had enough.
type visitor func(rows []indexRow) (taken int, enough bool, err error)

// walkIndex shows the rows behind a position in order, in batches, until visit has had enough or most were taken. It returns how
// many were, the position of the last one, and whether there is more behind it. chunk is how many rows of a partition are read at
// once.
func (s *Store) walkIndex(
	ctx context.Context, operation string, sp *span, after indexPosition, chunk, most int, visit visitor,
) (examined int, stopped indexPosition, more bool, err error) {
	for {
		rows, cut, err := s.readSpan(ctx, operation, sp, after, chunk)
		if err != nil {
			return examined, after, false, err
		}
		for len(rows) > 0 {
			batch := rows[:min(len(rows), batchKeys, most-examined)]
			taken, enough, err := visit(batch)
			if err != nil {
				return examined, after, false, err
			}
			if taken > 0 {
				after = batch[taken-1].indexPosition
			}
			rows, examined = rows[taken:], examined+taken
			if enough || examined == most {
				return examined, after, cut || len(rows) > 0, nil
			}
		}
		if !cut {
			return examined, after, false, nil
		}
	}
}

// readSpan reads the next rows of every partition and merges them up to where all that were cut reach: behind that, the order is
// not known yet.
func (s *Store) readSpan(ctx context.Context, operation string, sp *span, after indexPosition, chunk int) (rows []indexRow, cut bool, err error) {
	parts := make([][]indexRow, len(sp.partitions))
	cuts := make([]bool, len(sp.partitions))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for i, partition := range sp.partitions {
		group.Go(func() (err error) {
			parts[i], cuts[i], err = s.readPartition(groupCtx, operation, sp, partition, after, chunk)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	var end indexPosition
	for i, part := range parts {
		rows = append(rows, part...)
		if !cuts[i] {
			continue
		}
		if last := part[len(part)-1].indexPosition; !cut || sp.order(last, end) < 0 {
			end, cut = last, true
		}
	}
	slices.SortStableFunc(rows, func(a, b indexRow) int { return sp.order(a.indexPosition, b.indexPosition) })
	if cut {
		rows = slices.DeleteFunc(rows, func(r indexRow) bool { return sp.order(r.indexPosition, end) > 0 })
	}
	return rows, cut, nil
}

// readPartition reads one partition behind a position. Of rows with the position's own key, those of earlier partitions are behind
// it, those of later ones ahead.
func (s *Store) readPartition(
	ctx context.Context, operation string, sp *span, partition string, after indexPosition, chunk int,
) (rows []indexRow, cut bool, err error) {
	from, until := sp.from, sp.until
	in := &dynamodb.QueryInput{
		IndexName: &sp.index, KeyConditionExpression: aws.String("#" + sp.hash + " = :p AND #" + sp.sort + " BETWEEN :from AND :until"),
		ScanIndexForward: aws.Bool(!sp.backwards), Limit: aws.Int32(int32(chunk + 1)), //nolint:gosec // bounded by the page limit
	}
	passed := after.PK != "" && partition < after.Partition
	switch {
	case after.PK == "":
	case sp.backwards:
		until = after.Sort
	case passed:
		from = after.Sort + " " // below every character of a key: the next one
	default:
		from = after.Sort
	}
	if from > until {
		return nil, false, nil
	}
	if partition == after.Partition {
		in.ExclusiveStartKey = itemKey(after.PK, skRun)
		in.ExclusiveStartKey[sp.hash], in.ExclusiveStartKey[sp.sort] = text(partition), text(after.Sort)
	}
	in.ExpressionAttributeValues = item{":p": text(partition), ":from": text(from), ":until": text(until)}
	err = s.query(ctx, operation, in, func(it item) (bool, error) {
		row := indexRow{indexPosition{partition, textOf(it[sp.sort]), textOf(it[attrPK])}, it}
		if passed && row.Sort == after.Sort {
			return true, nil
		}
		if cut = len(rows) == chunk; cut {
			return false, nil
		}
		rows = append(rows, row)
		return true, nil
	})
	return rows, cut, err
}
