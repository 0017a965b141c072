package memlane

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// PutTask keeps a task's definition.
func (s *Storage) PutTask(ctx context.Context, c *lane.PutTaskCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	record := c.Record
	record.SeenAt = runlane.UTCMillis(record.SeenAt)
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.open(c.Environment)
	if env.tasks == nil {
		env.tasks = map[runlane.TaskID]lane.TaskRecord{}
	}
	env.tasks[record.ID] = record
	return nil
}

// ListTasks pages the definitions by id.
func (s *Storage) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("ListTasks", q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &runlane.Page[lane.TaskRecord]{}
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	for id, record := range env.tasks {
		if after == nil || string(id) > after.ID {
			page.Items = append(page.Items, record)
		}
	}
	slices.SortFunc(page.Items, func(a, b lane.TaskRecord) int { return strings.Compare(string(a.ID), string(b.ID)) })
	if len(page.Items) > limit {
		page.Items = slices.Clone(page.Items[:limit])
		page.Next = scope.Cursor(embedded.Position{ID: string(page.Items[limit-1].ID)})
	}
	return page, nil
}
