package dynamostore

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var _ lane.TaskCatalog = (*Store)(nil)

// taskItem is a task's definition. Its attributes are always all there. Durations are nanoseconds.
type taskItem struct {
	PK              string            `dynamodbav:"pk"`
	SK              string            `dynamodbav:"sk"`
	Queue           runlane.QueueName `dynamodbav:"qn"`
	Concurrency     int               `dynamodbav:"qc"`
	DispatchTimeout time.Duration     `dynamodbav:"qd"`
	IdempotencyTTL  time.Duration     `dynamodbav:"it"`
	ConcurrencyKey  bool              `dynamodbav:"kc"`
	IdempotencyKey  bool              `dynamodbav:"ki"`
	SingletonKey    bool              `dynamodbav:"ks"`
	MaxAttempts     int               `dynamodbav:"ma"`
	Backoff         string            `dynamodbav:"bo"`
	Timeout         time.Duration     `dynamodbav:"to"`
	ErrorMessages   bool              `dynamodbav:"em"`
	SeenAt          millis            `dynamodbav:"sa"`
}

// taskChange sets all of them. An attribute that this version does not know stays.
const taskChange = "SET #qn = :qn, #qc = :qc, #qd = :qd, #it = :it, #kc = :kc, #ki = :ki, #ks = :ks, #ma = :ma, #bo = :bo, #to = :to, " +
	"#em = :em, #sa = :sa"

func taskPK(e runlane.Environment) string { return e.Name() + ":task" }

func newTaskItem(e runlane.Environment, r *lane.TaskRecord) taskItem {
	return taskItem{
		PK: taskPK(e), SK: string(r.ID), Queue: r.Queue.Name, Concurrency: r.Queue.Concurrency, DispatchTimeout: r.Queue.DispatchTimeout,
		IdempotencyTTL: r.IdempotencyTTL, ConcurrencyKey: r.Keys.Concurrency, IdempotencyKey: r.Keys.Idempotency,
		SingletonKey: r.Keys.Singleton, MaxAttempts: r.MaxAttempts, Backoff: r.Backoff, Timeout: r.Timeout, ErrorMessages: r.ErrorMessages,
		SeenAt: toMillis(r.SeenAt),
	}
}

// put is the plain write of the definition.
func (i *taskItem) put() (*update, error) {
	raw, err := marshalItem(i)
	if err != nil {
		return nil, err
	}
	values := item{}
	for name, v := range raw {
		if name != attrPK && name != attrSK {
			values[":"+name] = v
		}
	}
	return &update{key: keyOf(raw), expression: taskChange, values: values}, nil
}

func (i *taskItem) record() lane.TaskRecord {
	return lane.TaskRecord{
		ID:             runlane.TaskID(i.SK),
		Queue:          runlane.Queue{Name: i.Queue, Concurrency: i.Concurrency, DispatchTimeout: i.DispatchTimeout},
		IdempotencyTTL: i.IdempotencyTTL,
		Keys:           runlane.TaskKeys{Concurrency: i.ConcurrencyKey, Idempotency: i.IdempotencyKey, Singleton: i.SingletonKey},
		MaxAttempts:    i.MaxAttempts, Backoff: i.Backoff, Timeout: i.Timeout, ErrorMessages: i.ErrorMessages, SeenAt: i.SeenAt.time(),
	}
}

// PutTask implements lane.TaskCatalog: one plain write.
func (s *Store) PutTask(ctx context.Context, c *lane.PutTaskCommand) error {
	if err := c.Validate(); err != nil {
		return err
	}
	task := newTaskItem(c.Environment, &c.Record)
	put, err := task.put()
	if err != nil {
		return err
	}
	_, _, err = s.db.Update(ctx, "put task", put)
	return err
}

// taskPosition is the id behind which a list of tasks resumes.
type taskPosition struct {
	ID runlane.TaskID `json:"i"`
}

// ListTasks implements lane.TaskCatalog.
func (s *Store) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	limit, err := q.PageLimit()
	if err != nil {
		return nil, err
	}
	scope := "tasks:" + q.Environment.Name()
	var after taskPosition
	if err := openCursor(q.After, scope, &after); err != nil {
		return nil, err
	}
	tasks := &Query{Operation: "list tasks", Where: "#pk = :pk", Values: item{":pk": text(taskPK(q.Environment))}, Limit: limit + 1}
	if after.ID != "" {
		tasks.Behind = itemKey(taskPK(q.Environment), string(after.ID))
	}
	page := &runlane.Page[lane.TaskRecord]{}
	err = s.db.Query(ctx, tasks, func(raw item) (bool, error) {
		if len(page.Items) == limit {
			page.Next = sealCursor(scope, taskPosition{page.Items[limit-1].ID})
			return false, nil
		}
		var known taskItem
		if err := unmarshalItem(raw, &known); err != nil {
			return false, err
		}
		page.Items = append(page.Items, known.record())
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
