package rows

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Task is a task's definition, stored whole, with its zero values. Attributes that its writer did not know read as
// zero. Durations are nanoseconds.
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
	KeepLogs        bool              `dynamodbav:"kl"`
	// Keep has the times of succeeded, failed and cancelled runs, or is absent.
	Keep       []time.Duration `dynamodbav:"kp,omitempty"`
	RateCount  int             `dynamodbav:"rc,omitempty"` // the queue's rate, absent without one
	RatePeriod time.Duration   `dynamodbav:"rp,omitempty"`
	Burst      int             `dynamodbav:"rb,omitempty"`
}

// taskChange sets every attribute but those that are absent by default. Unknown ones stay.
const taskChange = "SET #qn = :qn, #qc = :qc, #qd = :qd, #it = :it, #kc = :kc, #ki = :ki, #ks = :ks, #ma = :ma, #bo " +
	"= :bo, #to = :to, #em = :em, #sa = :sa, #cv = :cv, #kl = :kl"

func TaskPK(e runlane.Environment) string { return e.Name() + ":task" }

func NewTaskItem(e runlane.Environment, r *lane.TaskRecord) Task {
	i := Task{
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
		KeepLogs:        r.KeepLogs,
		RateCount:       r.Queue.Rate.Count,
		RatePeriod:      r.Queue.Rate.Period,
		Burst:           r.Queue.Burst,
	}
	if r.Keep != (runlane.Keep{}) {
		i.Keep = []time.Duration{r.Keep.Succeeded, r.Keep.Failed, r.Keep.Cancelled}
	}
	return i
}

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
	set, remove := taskChange, ""
	for _, name := range []string{"kp", "rc", "rp", "rb"} {
		if _, has := raw[name]; has {
			set += ", #" + name + " = :" + name
		} else {
			remove += ", #" + name
		}
	}
	if remove != "" {
		set += " REMOVE " + remove[2:]
	}
	return &item.Update{Key: item.KeyOf(raw), Expression: set, Values: values}, nil
}

func (i *Task) Record() lane.TaskRecord {
	r := lane.TaskRecord{
		ID: runlane.TaskID(i.SK),
		Queue: runlane.Queue{
			Name: i.Queue, Concurrency: i.Concurrency, DispatchTimeout: i.DispatchTimeout,
			Rate: runlane.Rate{Count: i.RateCount, Period: i.RatePeriod}, Burst: i.Burst,
		},
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
		KeepLogs:      i.KeepLogs,
	}
	if len(i.Keep) == 3 {
		r.Keep = runlane.Keep{Succeeded: i.Keep[0], Failed: i.Keep[1], Cancelled: i.Keep[2]}
	}
	return r
}
