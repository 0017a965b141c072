package memlane

import (
	"context"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// PutTask stores a task's definition.
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

// ListTasks pages the definitions by ID.
func (s *Storage) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	return pageByID(ctx, s, "ListTasks", q,
		func(env *environment) map[runlane.TaskID]lane.TaskRecord { return env.tasks },
		func(record lane.TaskRecord) lane.TaskRecord { return record })
}

// pageByID pages records of an environment by ID. show copies a record for the caller.
func pageByID[K ~string, R, T any](
	ctx context.Context, s *Storage, method string, q *lane.PageQuery, of func(*environment) map[K]R, show func(R) T,
) (*runlane.Page[T], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope(method, q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	page, last := &runlane.Page[T]{}, ""
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	records := of(env)
	for _, id := range slices.Sorted(maps.Keys(records)) {
		switch {
		case after != nil && string(id) <= after.ID:
		case len(page.Items) == limit:
			page.Next = scope.Cursor(embedded.Position{ID: last})
			return page, nil
		default:
			page.Items, last = append(page.Items, show(records[id])), string(id)
		}
	}
	return page, nil
}
