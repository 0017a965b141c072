package runlane

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The rules of a task in their three forms: as its program writes them, without the type of its payload, and as other
// programs read them. A new one is a field of each, copied in definition, Record and Definition.

// TaskOptions are the rules of a task. nil means all defaults. A key function that is nil, or returns "" for a payload,
// means no key.
type TaskOptions[P any] struct {
	// ConcurrencyKey partitions a bounded queue. Without one, runs share the queue's one partition.
	ConcurrencyKey func(P) string

	// ErrorMessages keeps the text of any error a handler returns in the run's failure record. By default, on a lane
	// that other processes share, only texts of *Error are kept and others read "Task failed.", because foreign errors
	// may quote payloads or credentials; the log has them, unless core.Options.HideErrorTexts is set.
	ErrorMessages bool

	// IdempotencyKey makes a second trigger with the same key return the first run.
	IdempotencyKey func(P) string

	// IdempotencyTTL is how long the key stays with its run, counted from creation. 0 means DefaultIdempotencyTTL,
	// WhileActive frees it when the run ends.
	IdempotencyTTL time.Duration

	// Queue is where runs wait. The zero value means DefaultQueue.
	Queue Queue

	// Retry is what follows a failure. The zero value means one attempt.
	Retry Retry

	// SingletonKey admits one active run per key.
	SingletonKey func(P) string

	// Timeout bounds one attempt. 0 means none (in Lambda the invocation's deadline holds anyway).
	Timeout time.Duration

	// Version is that of the task's code, for runs that remember and wait. Raise it with a change that runs which have
	// begun cannot take, and let the handler ask [Attempt.Began]. A program of a lower version leaves runs alone that a
	// higher one has gone on with. 0 is what code without a version has; runs pay nothing then.
	Version int
}

// Definition is the part of a task that does not depend on its payload type: what operators see and tools list.
type Definition struct {
	ID            TaskID
	ErrorMessages bool
	// IdempotencyTTL is how long a key stays with its run, or WhileActive. 0, where no NewTask made the definition,
	// means DefaultIdempotencyTTL.
	IdempotencyTTL time.Duration
	// Keys are those that the task computes from its payload.
	Keys    TaskKeys
	Queue   Queue
	Retry   Retry
	Timeout time.Duration
	Version int

	keys func(p *Prepared) error // computes the keys from an encoded payload; nil for a task without key functions
	err  error
}

// TaskKeys tells which key functions a task has.
type TaskKeys struct{ Concurrency, Idempotency, Singleton bool }

// Any reports whether there is one.
func (k TaskKeys) Any() bool { return k != TaskKeys{} }

// Err reports what is wrong with the definition, as [ErrConfigurationInvalid]; core.Open and Trigger return it.
// [NewTask] itself never panics, so a bad definition in a shared package cannot kill a program that never uses the
// task.
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
		Queue:   o.Queue,
		Retry:   o.Retry,
		Timeout: o.Timeout,
		Version: o.Version,
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

// validate finds everything that is wrong at once.
func (d *Definition) validate() error {
	faults := []error{d.ID.Validate(), d.Queue.Validate(), d.Retry.Validate()}
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
			texts = append(texts, fmt.Sprintf("%s (%s)", e.Message, e.Hint)) // its code is no news
		}
	}
	return &Error{
		Code:    ErrConfigurationInvalid,
		Message: fmt.Sprintf("task %q: %s", clip(string(d.ID), MaxIDBytes), strings.Join(texts, "; ")),
		Hint:    "correct the call of runlane.NewTask",
		Cause:   err,
	}
}

// TaskRecord describes a task to programs that do not have its code: all that a trigger needs to make the same run as
// the task's own program, and what operators want to see.
type TaskRecord struct {
	// ID is the task's.
	ID TaskID
	// Queue is where its runs wait, with its policy.
	Queue Queue
	// IdempotencyTTL is more than 0, or WhileActive.
	IdempotencyTTL time.Duration
	// Keys are those that the task computes from its payload.
	Keys TaskKeys

	// MaxAttempts is 1 or more.
	MaxAttempts int
	// Backoff describes it in words, at most lane.MaxBackoffText bytes. "" where there is no second attempt.
	Backoff string
	// Timeout is that of an attempt, 0 for none.
	Timeout time.Duration
	// ErrorMessages says that failures keep the text of any error.
	ErrorMessages bool
	// Version is that of the task's code, 0 for none.
	Version int `json:",omitempty"`

	// SeenAt is when a tick stored the record, by that process's clock.
	SeenAt time.Time
}

// Record is what other programs may know of the task, seen at an instant. The caller fills in Backoff.
func (d *Definition) Record(seen time.Time) TaskRecord {
	r := TaskRecord{
		ID:             d.ID,
		Queue:          d.Queue,
		IdempotencyTTL: d.IdempotencyTTL,
		Keys:           d.Keys,
		MaxAttempts:    d.Retry.Attempts(),
		Timeout:        d.Timeout,
		ErrorMessages:  d.ErrorMessages,
		Version:        d.Version,
		SeenAt:         seen,
	}
	if r.IdempotencyTTL == 0 { // of a definition that no NewTask made
		r.IdempotencyTTL = DefaultIdempotencyTTL
	}
	return r
}

// Definition lets a program without the task's code trigger it. With [NewRawCall] it makes the same run as the task's
// own program, but the caller has to give the keys that the task computes (Keys). It has no backoff: only the task's
// own program uses that.
func (r TaskRecord) Definition() *Definition {
	o := &TaskOptions[json.RawMessage]{
		ErrorMessages:  r.ErrorMessages,
		IdempotencyTTL: r.IdempotencyTTL,
		Queue:          r.Queue,
		Retry:          Retry{MaxAttempts: r.MaxAttempts},
		Timeout:        r.Timeout,
		Version:        r.Version,
	}
	return o.definition(r.ID)
}

// Same reports whether two records describe the same definition, whenever they were seen.
func (r TaskRecord) Same(other TaskRecord) bool {
	r.SeenAt, other.SeenAt = time.Time{}, time.Time{}
	return r == other
}
