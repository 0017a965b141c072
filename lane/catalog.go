package lane

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// TaskCatalog is the optional ability of a storage to keep the definitions of an environment's tasks, for programs that do not have
// them. Ticks store them. Found with [As]: a storage without it works as before, and such programs find no task.
type TaskCatalog interface {
	// PutTask stores a record in place of the one with its id, whatever that was. Of two puts at once either is kept, whole.
	PutTask(ctx context.Context, c *PutTaskCommand) error
	// ListTasks pages the records by id. Exact.
	ListTasks(ctx context.Context, q *PageQuery) (*runlane.Page[TaskRecord], error)
}

// TaskRecord is a task as programs know it that do not have it: all that a trigger needs to make the run which the task's own program
// would make, and what people want to see.
type TaskRecord struct {
	// ID is the task's.
	ID runlane.TaskID
	// Queue is where its runs wait, with its policy.
	Queue runlane.Queue
	// IdempotencyTTL is more than 0, or runlane.WhileActive.
	IdempotencyTTL time.Duration
	// Keys are those that the task computes from its payload.
	Keys runlane.TaskKeys

	// MaxAttempts is 1 or more.
	MaxAttempts int
	// Backoff describes it in words, at most MaxBackoffText bytes. "" where there is no second attempt.
	Backoff string
	// Timeout is that of an attempt, 0 for none.
	Timeout time.Duration
	// ErrorMessages says that failures keep the text of any error.
	ErrorMessages bool

	// SeenAt is when a tick stored the record, by that process's clock.
	SeenAt time.Time
}

// MaxBackoffText bounds [TaskRecord].Backoff.
const MaxBackoffText = 200

// Same reports whether two records describe the same definition, whenever they were seen.
func (r TaskRecord) Same(other TaskRecord) bool {
	r.SeenAt, other.SeenAt = time.Time{}, time.Time{}
	return r == other
}

// PutTaskCommand stores a task's record.
type PutTaskCommand struct {
	// Environment holds the task.
	Environment runlane.Environment
	// Record replaces what is there.
	Record TaskRecord
}

// Validate finds a record that cannot be put: runlane.ErrContractViolation. Storages judge before anything else.
func (c *PutTaskCommand) Validate() error {
	r := &c.Record
	if err := r.ID.Validate(); err != nil {
		return malformed(err, "record without a usable task id")
	}
	if err := r.Queue.Validate(); err != nil {
		return malformed(err, "record without a usable queue")
	}
	switch {
	case r.IdempotencyTTL <= 0 && r.IdempotencyTTL != runlane.WhileActive:
		return malformed(nil, "idempotency TTL is %s", r.IdempotencyTTL)
	case r.MaxAttempts < 1:
		return malformed(nil, "max attempts is %d", r.MaxAttempts)
	case len(r.Backoff) > MaxBackoffText || !utf8.ValidString(r.Backoff):
		return malformed(nil, "backoff has %d bytes, or is no text", len(r.Backoff))
	case r.Timeout < 0:
		return malformed(nil, "timeout is %s", r.Timeout)
	case r.SeenAt.IsZero():
		return malformed(nil, "record that was never seen")
	default:
		return nil
	}
}
