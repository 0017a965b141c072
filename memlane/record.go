package memlane

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// recordName identifies a record of a run: logs have names of their own.
type recordName struct {
	log  bool
	name string
}

func nameOf(r *lane.StepRecord) recordName { return recordName{r.Kind == runlane.StepKindLog, r.Name} }

// KeepRecord stores a record of an existing run.
func (s *Storage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	record := lane.RecordAtRest(&c.Record)
	h, env := s.lockRun(c.Environment, c.RunID)
	defer h.unlock()
	e := env.run(c.RunID)
	if e == nil || e.view().state.CreatedAt != embedded.At(c.CreatedAt) {
		return nil, embedded.NotFound(c.RunID)
	}
	if e.shard.records == nil {
		e.shard.records = map[runlane.RunID]map[recordName]*lane.StepRecord{}
	}
	records := e.shard.records[e.id]
	if records == nil {
		records = map[recordName]*lane.StepRecord{}
		e.shard.records[e.id] = records
	}
	if kept := records[nameOf(record)]; kept == nil || c.Replaces(kept) {
		records[nameOf(record)] = record // replaced, never modified
	} else {
		record = kept
	}
	return lane.RecordAtRest(record), nil
}

// ListRecords pages the records by name.
func (s *Storage) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.RecordsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	records := s.recordsOf(q)
	slices.SortFunc(records, func(a, b *lane.StepRecord) int { return strings.Compare(a.Name, b.Name) })
	page := &runlane.Page[lane.StepRecord]{}
	for _, record := range records {
		switch {
		case after != nil && record.Name <= after.ID:
		case len(page.Items) == limit:
			page.Next = scope.Cursor(embedded.Position{ID: string(page.Items[limit-1].Name)})
			return page, nil
		default:
			page.Items = append(page.Items, *lane.RecordAtRest(record))
		}
	}
	return page, nil
}

// recordsOf returns the stored records, which are never modified.
func (s *Storage) recordsOf(q *lane.RecordQuery) (records []*lane.StepRecord) {
	h, env := s.lockRun(q.Environment, q.RunID)
	defer h.unlock()
	e := env.run(q.RunID)
	if e == nil || e.view().state.CreatedAt != embedded.At(q.CreatedAt) {
		return nil
	}
	for key, record := range e.shard.records[e.id] {
		if key.log == q.Logs && q.Includes(key.name) {
			records = append(records, record)
		}
	}
	return records
}
