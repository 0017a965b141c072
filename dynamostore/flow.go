package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// PutFlow implements lane.Storage: the head alone, or head and plan in one transaction.
func (s *Store) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	shards, err := s.shardCounts(ctx, c.Environment)
	if err != nil {
		return nil, err
	}
	var before *rows.Flow
	key := lane.FlowKey{Environment: c.Environment, FlowID: c.Flow.ID}
	if c.Flow.Version > 0 {
		before, err = s.readFlow(ctx, key)
		if err != nil {
			return nil, err
		}
		if before == nil || before.Version != c.Flow.Version || before.Created != rows.ToMillis(c.Flow.CreatedAt) {
			return nil, c.Changed()
		}
	}
	if c.Remove {
		return nil, s.removeFlow(ctx, c, before)
	}
	head := rows.NewFlow(c, randomID(), shards)
	write, err := head.Write(before)
	if err != nil {
		return nil, err
	}
	ok := false
	if len(c.Flow.Plan) > 0 {
		ok, err = s.putPlan(ctx, head, write, c.Flow.Plan)
	} else {
		text, values := write.Change()
		_, ok, err = s.db.Update(ctx, "put flow", &item.Update{
			Key:        item.KeyOf(write.Before),
			Expression: text,
			Values:     values,
			Condition:  write.Condition,
			Before:     write.Before,
			Wrote:      head.Wrote,
		})
	}
	if err == nil && !ok {
		err = c.Changed()
	}
	if err != nil {
		return nil, err
	}
	record := head.Record()
	record.Plan = slices.Clone(c.Flow.Plan)
	return record, nil
}

func (s *Store) putPlan(ctx context.Context, head *rows.Flow, write item.Write, plan []byte) (bool, error) {
	put, err := head.PutPlan(plan)
	if err != nil {
		return false, err
	}
	lost, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "put flow",
		Token:     head.Change,
		Writes:    []item.Write{write, put},
		Version:   "sq",
		Proof:     head.Proof(),
	})
	return len(lost) == 0, err
}

func (s *Store) removeFlow(ctx context.Context, c *lane.FlowCommand, head *rows.Flow) error {
	writes := []item.Write{{Before: head.Raw, Condition: head.Unchanged()}}
	err := s.db.Query(ctx, &ddb.Query{
		Operation: "remove flow",
		Where:     "#pk = :pk",
		Values:    item.Item{":pk": item.Text(head.PK)},
	}, func(raw item.Item) (bool, error) {
		if item.TextOf(raw[item.SK]) != rows.FlowHeadSK {
			writes = append(writes, item.Write{Before: raw})
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	lost, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "remove flow",
		Token:     randomID(),
		Writes:    writes,
		Proof:     head.GoneProof(),
	})
	if err == nil && len(lost) > 0 {
		err = c.Changed()
	}
	return err
}

func (s *Store) readFlow(ctx context.Context, key lane.FlowKey) (*rows.Flow, error) {
	raw, err := s.db.Get(ctx, "read flow", rows.FlowPK(key), rows.FlowHeadSK)
	if err != nil || raw == nil {
		return nil, err
	}
	return rows.ReadFlow(raw)
}

// GetFlow implements lane.Storage: the head alone, or head and plans in one query.
func (s *Store) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	if err := q.FlowID.Validate(); err != nil {
		return nil, err
	}
	if q.WithoutPlan {
		head, err := s.readFlow(ctx, q.FlowKey)
		switch {
		case err != nil:
			return nil, err
		case head == nil:
			return nil, lane.FlowNotFound(q.FlowID)
		}
		return head.Record(), nil
	}
	var record *lane.FlowRecord
	err := s.db.Query(ctx, &ddb.Query{
		Operation: "read flow",
		Where:     "#pk = :pk",
		Values:    item.Item{":pk": item.Text(rows.FlowPK(q.FlowKey))},
	}, func(raw item.Item) (bool, error) {
		sk := item.TextOf(raw[item.SK])
		switch {
		case sk == rows.FlowHeadSK: // 'head' < 'plan:…'
			head, err := rows.ReadFlow(raw)
			if err != nil {
				return false, err
			}
			record = head.Record()
		case record != nil && strings.HasPrefix(sk, rows.FlowPlanPrefix) && sk <= rows.FlowPlanSK(record.Round):
			var plan rows.FlowPlan
			if err := rows.Unmarshal(raw, &plan); err != nil {
				return false, err
			}
			record.Plan = plan.Plan
		}
		return record != nil, nil
	})
	if err == nil && record == nil {
		err = lane.FlowNotFound(q.FlowID)
	}
	if err != nil {
		return nil, err
	}
	return record, nil
}

// ListFlows implements lane.Storage. It reads each flow of the index strongly.
func (s *Store) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	before := rows.ToMillis(q.Before)
	scope := fmt.Sprintf("flows %s %t %d", q.Environment.Name(), q.Finished, before)
	var after ddb.Position
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	span, err := s.flowSpan(ctx, q, before)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[lane.FlowRecord]{}
	_, stopped, more, err := s.db.Walk(ctx, "list flows", span, after, ddb.ChunkOf(limit), maxListRows,
		func(entries []ddb.Row) (taken int, enough bool, err error) {
			ids := make([]runlane.FlowID, len(entries))
			for i, row := range entries {
				ids[i] = rows.ParseFlowPK(row.PK)
			}
			flows, err := s.flows(ctx, q.Environment, ids)
			if err != nil {
				return 0, false, err
			}
			for ; taken < len(entries) && len(page.Items) < limit; taken++ {
				if f := flows[ids[taken]]; f != nil && slices.Contains([]string{f.DoneA, f.DueA}, entries[taken].Sort) {
					page.Items = append(page.Items, *f.Record())
				}
			}
			return taken, len(page.Items) == limit, nil
		})
	if err != nil {
		return nil, err
	}
	if more {
		page.Next = rows.SealCursor(scope, stopped)
	}
	return page, nil
}

func (s *Store) flowSpan(ctx context.Context, q *lane.FlowQuery, before rows.Millis) (*ddb.Span, error) {
	shards, err := s.shardCounts(ctx, q.Environment)
	if err != nil {
		return nil, err
	}
	span, list := &ddb.Span{Index: indexes[1], SK: rows.FlowHeadSK}, rows.FlowsOpen
	until := item.BeyondKeys
	if before > 0 {
		until = fmt.Sprintf("%013d", before) // keys of that moment continue with a colon
	}
	switch {
	case q.Finished:
		list, span.Backwards = rows.FlowsOver, true
	case before > 0:
		span.Index, list = indexes[0], rows.FlowsTend
	}
	for shard := range shards.Read {
		span.Partitions = append(span.Partitions, ddb.Partition{
			Name: list.Partition(q.Environment, shard), From: item.BeforeKeys, Until: until,
		})
	}
	return span, nil
}

func (s *Store) flows(
	ctx context.Context, e runlane.Environment, ids []runlane.FlowID,
) (map[runlane.FlowID]*rows.Flow, error) {
	keys := make([]item.Item, len(ids))
	for i, id := range ids {
		keys[i] = rows.FlowHead(lane.FlowKey{Environment: e, FlowID: id})
	}
	found := make(map[runlane.FlowID]*rows.Flow, len(ids))
	err := s.db.BatchGet(ctx, "read flows", keys, func(raw item.Item) error {
		f, err := rows.ReadFlow(raw)
		found[rows.ParseFlowPK(item.TextOf(raw[item.PK]))] = f
		return err
	})
	return found, err
}

func (s *Store) flowsOf(
	ctx context.Context, e runlane.Environment, runs map[runlane.RunID]*rows.Run,
) (map[runlane.FlowID]*rows.Flow, error) {
	ids := origins(runs, (*rows.Run).Flow)
	if len(ids) == 0 {
		return nil, nil
	}
	return s.flows(ctx, e, ids)
}
