package rows

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Task is a task's definition, written whole: an item has every attribute that its writer knew, also those that are
// zero. One that was added since is absent and reads as zero. Durations are nanoseconds.
type Task struct {
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
	SeenAt          Millis            `dynamodbav:"sa"`
	Version         int               `dynamodbav:"cv"`
}

// taskChange sets all of them. An attribute that this version does not know stays.
const taskChange = "SET #qn = :qn, #qc = :qc, #qd = :qd, #it = :it, #kc = :kc, #ki = :ki, #ks = :ks, #ma = :ma, #bo " +
	"= :bo, #to = :to, #em = :em, #sa = :sa, #cv = :cv"

// TaskPK is the partition key of the tasks.
func TaskPK(e runlane.Environment) string { return e.Name() + ":task" }

// NewTaskItem is the item of a definition.
func NewTaskItem(e runlane.Environment, r *lane.TaskRecord) Task {
	return Task{
		PK:              TaskPK(e),
		SK:              string(r.ID),
		Queue:           r.Queue.Name,
		Concurrency:     r.Queue.Concurrency,
		DispatchTimeout: r.Queue.DispatchTimeout,
		IdempotencyTTL:  r.IdempotencyTTL,
		ConcurrencyKey:  r.Keys.Concurrency,
		IdempotencyKey:  r.Keys.Idempotency,
		SingletonKey:    r.Keys.Singleton,
		MaxAttempts:     r.MaxAttempts,
		Backoff:         r.Backoff,
		Timeout:         r.Timeout,
		ErrorMessages:   r.ErrorMessages,
		SeenAt:          ToMillis(r.SeenAt),
		Version:         r.Version,
	}
}

// Put is the plain write of the definition.
func (i *Task) Put() (*item.Update, error) {
	raw, err := Marshal(i)
	if err != nil {
		return nil, err
	}
	values := item.Item{}
	for name, v := range raw {
		if name != item.PK && name != item.SK {
			values[":"+name] = v
		}
	}
	return &item.Update{Key: item.KeyOf(raw), Expression: taskChange, Values: values}, nil
}

// Record is the definition in the form of the contract.
func (i *Task) Record() lane.TaskRecord {
	return lane.TaskRecord{
		ID:             runlane.TaskID(i.SK),
		Queue:          runlane.Queue{Name: i.Queue, Concurrency: i.Concurrency, DispatchTimeout: i.DispatchTimeout},
		IdempotencyTTL: i.IdempotencyTTL,
		Keys: runlane.TaskKeys{
			Concurrency: i.ConcurrencyKey,
			Idempotency: i.IdempotencyKey,
			Singleton:   i.SingletonKey,
		},
		MaxAttempts:   i.MaxAttempts,
		Backoff:       i.Backoff,
		Timeout:       i.Timeout,
		ErrorMessages: i.ErrorMessages,
		SeenAt:        i.SeenAt.Time(),
		Version:       i.Version,
	}
}

// ProgressSK is the sort key of a run's progress note.
const ProgressSK = "note"

// Progress is the last note of a run, beside its history. It sorts before what is read with a run, and before the run
// item, like everything that pruning removes first.
type Progress struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	At      Millis `dynamodbav:"at"`
	Attempt int    `dynamodbav:"an"`
	Note    string `dynamodbav:"nt"`
}

// ProgressWrites are the note, and a check of the lease under which it is written. They do not overwrite a later note.
func ProgressWrites(key lane.RunKey, leaseToken string, p runlane.Progress) ([]item.Write, error) {
	note, err := Marshal(Progress{PK: RunPK(key), SK: ProgressSK, At: ToMillis(p.At), Attempt: p.Attempt, Note: p.Note})
	if err != nil {
		return nil, err
	}
	run := item.Key(RunPK(key), RunSK)
	return []item.Write{
		{Before: run, After: run, Condition: item.Equal("lt", item.Text(leaseToken)), Check: true},
		{
			After: note,
			Condition: item.Condition{
				Text:   "attribute_not_exists(#pk) OR #at <= :at",
				Values: item.Item{":at": note["at"]},
			},
		},
	}, nil
}
