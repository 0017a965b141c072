package lane

import (
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// TaskRecord describes a task to programs without its code, see [runlane.TaskRecord].
type TaskRecord = runlane.TaskRecord

// MaxBackoffText bounds [TaskRecord].Backoff.
const MaxBackoffText = 200

// PutTaskCommand stores a task's Record in an Environment and replaces an existing one.
type PutTaskCommand struct {
	Environment runlane.Environment
	Record      TaskRecord
}

// Validate returns runlane.ErrContractViolation if the record cannot be stored. Storages call it first.
func (c *PutTaskCommand) Validate() error {
	r := &c.Record
	if err := r.Queue.Validate(); err != nil {
		return malformed(err, "record without a usable queue")
	}
	if err := r.Definition().Err(); err != nil {
		return malformed(err, "record of a task that is not valid")
	}
	switch {
	case r.IdempotencyTTL == 0:
		return malformed(nil, "idempotency TTL is 0")
	case r.MaxAttempts < 1:
		return malformed(nil, "max attempts is %d", r.MaxAttempts)
	case len(r.Backoff) > MaxBackoffText || !utf8.ValidString(r.Backoff):
		return malformed(nil, "backoff has %d bytes, or is not text", len(r.Backoff))
	case r.SeenAt.IsZero():
		return malformed(nil, "record without the time at which it was seen")
	default:
		return nil
	}
}
