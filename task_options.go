package runlane

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The rules of a task have three forms: TaskOptions in its program, Definition without the payload type, TaskRecord for
// other programs. A new rule is a field of each, copied in definition, Record and Definition.

// TaskOptions are the rules of a task. nil means all defaults. A nil key function, or one that returns "", means no
// key.
type TaskOptions[P any] struct {
	// ConcurrencyKey partitions a bounded queue. Runs without a key share one partition.
	ConcurrencyKey func(P) string

	// ErrorMessages keeps the text of any handler error in the run's failure record. By default, on a lane shared with
	// other processes, only texts of *Error are kept and others become "Task failed.", because they may quote payloads
	// or credentials. The log has the text, unless core.Options.HideErrorTexts is set.
	ErrorMessages bool

	// IdempotencyKey makes a second trigger with the same key return the first run.
	IdempotencyKey func(P) string

	// IdempotencyTTL is how long the key stays with its run, counted from creation. 0 means DefaultIdempotencyTTL;
	// WhileActive frees the key when the run ends.
	IdempotencyTTL time.Duration

	// Keep is how long finished runs of the task are kept, shorter or longer than core.Options.Keep. What it does not say
	// is as there.
	Keep Keep

	// KeepLogs keeps with the run what its attempts log with [Attempt.Logger], up to [MaxLogBytes] each: the lines from
	// slog.LevelInfo on, and those that the program's logger takes. Read them with core.Runs.Logs or "runlane runs
	// logs". Lines are kept as they are, apart from a [Codec]: log no secrets.
	KeepLogs bool

	// Queue of the runs. The zero value means DefaultQueue.
	Queue Queue

	// Retry applies after a failure. The zero value means one attempt.
	Retry Retry

	// SingletonKey admits one active run per key.
	SingletonKey func(P) string

	// Timeout bounds one attempt. 0 means none (in Lambda the invocation's deadline applies anyway).
	Timeout time.Duration

	// Version of the task's code, for runs that remember and wait. Raise it with a change that breaks runs already
	// begun, and let the handler check [Attempt.Began]. A program with a lower version leaves alone runs that a higher
	// one has continued. 0 means no version, at no cost.
	Version int
}

// Definition is the part of a task that does not depend on its payload type. Operators and tools see this.
type Definition struct {
	ID            TaskID
	ErrorMessages bool
	// IdempotencyTTL is how long a key stays with its run, or WhileActive. In a definition not made by NewTask, 0 means
	// DefaultIdempotencyTTL.
	IdempotencyTTL time.Duration
	// Keys computed from the payload.
	Keys     TaskKeys
	Keep     Keep
	KeepLogs bool
	Queue    Queue
	Retry    Retry
	Timeout  time.Duration
	Version  int

	keys func(p *Prepared) error // applied to an encoded payload; nil without key functions
	err  error
}

// TaskKeys lists the key functions that a task has.
type TaskKeys struct{ Concurrency, Idempotency, Singleton bool }

// Any reports whether the task has a key function.
func (k TaskKeys) Any() bool { return k != TaskKeys{} }

// Err returns [ErrConfigurationInvalid] if the definition is invalid; core.Open and Trigger return it. [NewTask] never
// panics, so a bad definition in a shared package cannot break a program that never uses the task.
func (d *Definition) Err() error { return d.err }

func (o *TaskOptions[P]) definition(id TaskID) *Definition {
	d := &Definition{
		ID:             id,
		ErrorMessages:  o.ErrorMessages,
		IdempotencyTTL: o.IdempotencyTTL,
		Keys: TaskKeys{
			Concurrency: o.ConcurrencyKey != nil,
			Idempotency: o.IdempotencyKey != nil,
			Singleton:   o.SingletonKey != nil,
		},
		Keep:     o.Keep,
		KeepLogs: o.KeepLogs,
		Queue:    o.Queue,
		Retry:    o.Retry,
		Timeout:  o.Timeout,
		Version:  o.Version,
	}
	if d.Queue == (Queue{}) {
		d.Queue = DefaultQueue
	}
	if d.IdempotencyTTL == 0 {
		d.IdempotencyTTL = DefaultIdempotencyTTL
	}
	d.err = d.validate()
	return d
}

// validate reports all faults at once.
func (d *Definition) validate() error {
	faults := []error{d.ID.Validate(), d.Queue.Validate(), d.Retry.Validate(), d.Keep.Validate()}
	if d.Timeout < 0 {
		faults = append(faults, &Error{
			Code:    ErrConfigurationInvalid,
			Message: "Timeout is negative",
			Hint:    "0 means no timeout",
		})
	}
	if d.Version < 0 {
		faults = append(faults, &Error{
			Code:    ErrConfigurationInvalid,
			Message: "Version is negative",
			Hint:    "0 means no version",
		})
	}
	if ttl := d.IdempotencyTTL; ttl < 0 && ttl != WhileActive {
		faults = append(faults, &Error{
			Code:    ErrConfigurationInvalid,
			Message: "IdempotencyTTL is negative",
			Hint:    "use WhileActive, 0 or a duration",
		})
	}
	err := errors.Join(faults...)
	if err == nil {
		return nil
	}
	var texts []string
	for _, fault := range faults {
		if e, ok := errors.AsType[*Error](fault); ok {
			texts = append(texts, fmt.Sprintf("%s (%s)", e.Message, e.Hint))
		}
	}
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: fmt.Sprintf("task %q: %s", clip(string(d.ID), MaxIDBytes), strings.Join(texts, "; ")),
		Hint:    "correct the call of runlane.NewTask",
		Cause:   err,
	}
}

// TaskRecord describes a task to programs without its code: enough for a trigger to make the same run as the task's own
// program, and details for operators.
type TaskRecord struct {
	ID TaskID
	// Queue of its runs, with the queue's policy.
	Queue Queue
	// IdempotencyTTL is positive, or WhileActive.
	IdempotencyTTL time.Duration
	// Keys computed from the payload.
	Keys TaskKeys

	// MaxAttempts is 1 or more.
	MaxAttempts int
	// Backoff describes the delays in words, in at most lane.MaxBackoffText bytes. "" if there is no second attempt.
	Backoff string
	// Timeout of an attempt, 0 for none.
	Timeout time.Duration
	// ErrorMessages: failures keep the text of any error.
	ErrorMessages bool
	// Keep of its finished runs, zero where the environment's holds.
	Keep Keep `json:",omitzero"`
	// KeepLogs: runs keep what their attempts log.
	KeepLogs bool `json:",omitempty"`
	// Version of the task's code, 0 for none.
	Version int `json:",omitempty"`

	// SeenAt is when a tick stored the record, by that process's clock.
	SeenAt time.Time
}

// Record returns the task's description for other programs. The caller fills in Backoff.
func (d *Definition) Record(seen time.Time) TaskRecord {
	r := TaskRecord{
		ID:             d.ID,
		Queue:          d.Queue,
		IdempotencyTTL: d.IdempotencyTTL,
		Keys:           d.Keys,
		MaxAttempts:    d.Retry.Attempts(),
		Timeout:        d.Timeout,
		ErrorMessages:  d.ErrorMessages,
		Keep:           d.Keep,
		KeepLogs:       d.KeepLogs,
		Version:        d.Version,
		SeenAt:         seen,
	}
	if r.IdempotencyTTL == 0 { // the definition was not made by NewTask
		r.IdempotencyTTL = DefaultIdempotencyTTL
	}
	return r
}

// Definition lets a program without the task's code trigger it. With [NewRawCall] it makes the same run as the task's
// own program, except that the caller must pass the computed keys (Keys). It has no backoff, which only the task's own
// program uses.
func (r TaskRecord) Definition() *Definition {
	o := &TaskOptions[json.RawMessage]{
		ErrorMessages:  r.ErrorMessages,
		IdempotencyTTL: r.IdempotencyTTL,
		Keep:           r.Keep,
		KeepLogs:       r.KeepLogs,
		Queue:          r.Queue,
		Retry:          Retry{MaxAttempts: r.MaxAttempts},
		Timeout:        r.Timeout,
		Version:        r.Version,
	}
	return o.definition(r.ID)
}

// Same reports whether two records describe the same definition. SeenAt is ignored.
func (r TaskRecord) Same(other TaskRecord) bool {
	r.SeenAt, other.SeenAt = time.Time{}, time.Time{}
	return r == other
}
