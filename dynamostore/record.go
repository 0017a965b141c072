package dynamostore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// maxRecordBytes ends a page of records early: 500 results of the largest size would not fit into memory.
const maxRecordBytes = 8 << 20

// KeepRecord implements lane.Storage: one plain write. The run is not read.
func (s *Store) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	next, err := rows.NewKept(c)
	if err != nil {
		return nil, err
	}
	put, err := next.Put(c.Replace)
	if err != nil {
		return nil, err
	}
	// After a lost answer the stored record is the result, whether this write or another one stored it.
	put.Wrote = func(now item.Item) bool { return len(now) > 0 && !replaceable(now, c) }
	kept, _, err := s.db.Update(ctx, "keep record", put)
	if err != nil {
		return nil, err
	}
	return recordOf(kept)
}

func replaceable(now item.Item, c *lane.KeepCommand) bool {
	var kept rows.Kept
	if rows.Unmarshal(now, &kept) != nil {
		return false
	}
	at := rows.ToMillis(c.Record.At)
	return c.Replace && kept.Kind == string(c.Record.Kind) &&
		(kept.Attempt < c.Record.Attempt || kept.Attempt == c.Record.Attempt && kept.At < at)
}

func recordOf(raw item.Item) (*lane.StepRecord, error) {
	var kept rows.Kept
	if err := rows.Unmarshal(raw, &kept); err != nil {
		return nil, err
	}
	return kept.Record()
}

type recordPosition struct {
	Name string `json:"n"`
}

// ListRecords implements lane.Storage.
func (s *Store) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	pk := rows.RunPK(lane.RunKey{Environment: q.Environment, RunID: q.RunID})
	span := rows.RecordSpan(rows.ToMillis(q.CreatedAt), q.Logs)
	scope := fmt.Sprintf("records:%s:%s%q%q", pk, span, q.From, q.Until)
	var after recordPosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	records := &ddb.Query{
		Operation: "list records",
		Where:     "#pk = :pk AND #sk BETWEEN :from AND :until",
		Values: item.Item{
			":pk": item.Text(pk), ":from": item.Text(span + q.From),
			":until": item.Text(span + cmp.Or(q.Until, item.BeyondKeys)),
		},
		Limit: limit + 1,
	}
	if after.Name != "" {
		records.Behind = item.Key(pk, span+after.Name)
	}
	page, size := &runlane.Page[lane.StepRecord]{}, 0
	err = s.db.Query(ctx, records, func(raw item.Item) (bool, error) {
		if n := len(page.Items); n == limit || size > maxRecordBytes {
			page.Next = rows.SealCursor(scope, recordPosition{page.Items[n-1].Name})
			return false, nil
		}
		record, err := recordOf(raw)
		if err != nil {
			return false, err
		}
		if !q.Includes(record.Name) { // BETWEEN includes its end
			return true, nil
		}
		page.Items, size = append(page.Items, *record), size+len(record.Result)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
