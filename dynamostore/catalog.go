package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// PutTask implements lane.Storage: one plain write.
func (s *Store) PutTask(ctx context.Context, c *lane.PutTaskCommand) error {
	if err := c.Validate(); err != nil {
		return err
	}
	task := rows.NewTaskItem(c.Environment, &c.Record)
	put, err := task.Put()
	if err != nil {
		return err
	}
	_, _, err = s.db.Update(ctx, "put task", put)
	return err
}

type taskPosition struct {
	ID runlane.TaskID `json:"i"`
}

// ListTasks implements lane.Storage.
func (s *Store) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := "tasks:" + q.Environment.Name()
	var after taskPosition
	if err := rows.OpenCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	tasks := &ddb.Query{
		Operation: "list tasks",
		Where:     "#pk = :pk",
		Values:    item.Item{":pk": item.Text(rows.TaskPK(q.Environment))},
		Limit:     limit + 1,
	}
	if after.ID != "" {
		tasks.Behind = item.Key(rows.TaskPK(q.Environment), string(after.ID))
	}
	page := &runlane.Page[lane.TaskRecord]{}
	err = s.db.Query(ctx, tasks, func(raw item.Item) (bool, error) {
		if len(page.Items) == limit {
			page.Next = rows.SealCursor(scope, taskPosition{page.Items[limit-1].ID})
			return false, nil
		}
		var known rows.Task
		if err := rows.Unmarshal(raw, &known); err != nil {
			return false, err
		}
		page.Items = append(page.Items, known.Record())
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
