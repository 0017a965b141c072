package memlane

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// flow returns a record, or nil. env may be nil.
func (env *environment) flow(id runlane.FlowID) *lane.FlowRecord {
	if env == nil {
		return nil
	}
	return env.flows[id]
}

// PutFlow implements [lane.Storage].
func (s *Storage) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(c.Environment).flow(c.Flow.ID)
	if err := embedded.JudgeFlow(known, c); err != nil {
		return nil, err
	}
	env := s.open(c.Environment)
	if c.Remove {
		delete(env.flows, c.Flow.ID)
		return nil, nil
	}
	put := c.Flow.AtRest()
	put.Version++
	returned := put.AtRest()
	if len(put.Plan) == 0 {
		put.Plan = known.Plan
	}
	if env.flows == nil {
		env.flows = map[runlane.FlowID]*lane.FlowRecord{}
	}
	env.flows[put.ID] = put
	return returned, nil
}

// GetFlow returns the record.
func (s *Storage) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := q.FlowID.Validate(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.find(q.Environment).flow(q.FlowID)
	switch {
	case known == nil:
		return nil, lane.FlowNotFound(q.FlowID)
	case q.WithoutPlan:
		head := *known
		head.Plan = nil
		return &head, nil
	default:
		return known.AtRest(), nil
	}
}

// ListFlows pages records without plans.
func (s *Storage) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListFlows", q.Environment, fmt.Sprint(q.Finished, embedded.At(q.Before)))
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	page := &runlane.Page[lane.FlowRecord]{}
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	for _, known := range env.flows {
		if !listed(q, known) || after != nil && compareFlows(flowPosition(q, known), *after) <= 0 {
			continue
		}
		shown := *known
		shown.Plan = nil
		page.Items = append(page.Items, shown)
	}
	slices.SortFunc(page.Items, func(a, b lane.FlowRecord) int {
		return compareFlows(flowPosition(q, &a), flowPosition(q, &b))
	})
	if len(page.Items) > limit {
		page.Items = slices.Clone(page.Items[:limit])
		page.Next = scope.Cursor(flowPosition(q, &page.Items[limit-1]))
	}
	return page, nil
}

func listed(q *lane.FlowQuery, f *lane.FlowRecord) bool {
	switch {
	case f.Finished() != q.Finished:
		return false
	case q.Before.IsZero():
		return true
	case q.Finished:
		return f.FinishedAt.Before(q.Before)
	default:
		return f.Tended(q.Before)
	}
}

// flowPosition is the flow's place in its list: by ID, by when it is due for tending, or by when it finished.
func flowPosition(q *lane.FlowQuery, f *lane.FlowRecord) embedded.Position {
	p := embedded.Position{ID: string(f.ID)}
	switch {
	case f.Finished():
		p.At = embedded.At(f.FinishedAt)
	case !q.Before.IsZero():
		p.At = -embedded.At(f.TendAt) // soonest first
	}
	return p
}

func compareFlows(a, b embedded.Position) int {
	return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.ID, b.ID))
}
