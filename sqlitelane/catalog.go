package sqlitelane

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// PutTask stores a task's definition.
func (s *Storage) PutTask(ctx context.Context, c *lane.PutTaskCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	r := c.Record
	r.SeenAt = runlane.UTCMillis(r.SeenAt)
	stored, err := json.Marshal(r)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a task's record does not marshal", Cause: err}
	}
	return s.write(ctx, func(t *tx) error {
		env, err := s.names.ensure(t.Tx, c.Environment.Name())
		if err != nil {
			return err
		}
		return t.Exec(`INSERT INTO tasks(env, id, record) VALUES(?, ?, ?)
			ON CONFLICT(env, id) DO UPDATE SET record = excluded.record`, env, string(r.ID), string(stored))
	})
}

// ListTasks pages the definitions by ID.
func (s *Storage) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	return listRecords[lane.TaskRecord](ctx, s, "ListTasks", q,
		"SELECT id, record FROM tasks WHERE env = ? AND id > ? ORDER BY id LIMIT ?")
}

// listRecords pages records stored as JSON, by ID.
func listRecords[T any](
	ctx context.Context, s *Storage, method string, q *lane.PageQuery, query string,
) (*runlane.Page[T], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope(method, q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	page, from := &runlane.Page[T]{}, ""
	if after != nil {
		from = after.ID
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		last := ""
		return c.Each(query, func(row []driverValue) (bool, error) {
			if len(page.Items) == limit {
				page.Next = scope.Cursor(embedded.Position{ID: last})
				return false, nil
			}
			last = text(row[0])
			var r T
			if err := json.Unmarshal([]byte(text(row[1])), &r); err != nil {
				return false, damagedRecord(last, err)
			}
			page.Items = append(page.Items, r)
			return true, nil
		}, env, from, int64(limit+1))
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func damagedRecord(id string, cause error) error {
	return &runlane.Error{
		Code: runlane.ErrInvariantViolation, Message: "the stored record of " + id + " does not decode", Cause: cause,
		Hint: "update this program; if it is the newest, restore a backup of the file",
	}
}
