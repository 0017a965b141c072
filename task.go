package runlane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// WhileActive, as an idempotency TTL, frees the key as soon as the run is terminal.
const WhileActive time.Duration = -1

// Task is a durable name with a payload type. It has no handler: programs that only trigger do not link one.
//
// Payloads are JSON by encoding/json, so a payload type controls its form with MarshalJSON and reads the forms of older versions
// with UnmarshalJSON. Unknown fields are ignored. Task[json.RawMessage] keeps bytes exactly.
type Task[P any] struct {
	definition *Definition
	options    TaskOptions[P]
}

// TaskOptions are the rules of a task. nil means all defaults. A key function that is nil, or returns "" for a payload, means no
// key.
type TaskOptions[P any] struct {
	// ConcurrencyKey partitions a bounded queue. Without one, runs share the queue's one partition.
	ConcurrencyKey func(P) string

	// ErrorMessages keeps the text of any error a handler returns in the run's failure record. By default, on a lane that other
	// processes share, only texts of *Error are kept and others read "Task failed.", because foreign errors may quote payloads or
	// credentials; the log has them, unless core.Options.HideErrorTexts is set.
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
}

// Definition is the part of a task that does not depend on its payload type: what operators see and tools list.
type Definition struct {
	ID            TaskID
	ErrorMessages bool
	// IdempotencyTTL is how long a key stays with its run, or WhileActive. 0, where no NewTask made the definition, means
	// DefaultIdempotencyTTL.
	IdempotencyTTL time.Duration
	// Keys are those that the task computes from its payload.
	Keys    TaskKeys
	Queue   Queue
	Retry   Retry
	Timeout time.Duration

	keys func(p *Prepared) error // computes the keys from an encoded payload; nil for a task without key functions
	err  error
}

// TaskKeys tells which key functions a task has.
type TaskKeys struct{ Concurrency, Idempotency, Singleton bool }

// Any reports whether there is one.
func (k TaskKeys) Any() bool { return k != TaskKeys{} }

// Err reports what is wrong with the definition, as [ErrConfigurationInvalid]; core.Open and Trigger return it. [NewTask]
// itself never panics, so a bad definition in a shared package cannot kill a program that never uses the task.
func (d *Definition) Err() error { return d.err }

// NewTask defines a task. P is inferred from the options, or given: NewTask[Welcome]("emails.welcome", nil).
func NewTask[P any](id TaskID, options *TaskOptions[P]) *Task[P] {
	t := &Task[P]{}
	if options != nil {
		t.options = *options
	}
	if t.options.Queue == (Queue{}) {
		t.options.Queue = DefaultQueue
	}
	if t.options.IdempotencyTTL == 0 {
		t.options.IdempotencyTTL = DefaultIdempotencyTTL
	}
	o := &t.options
	t.definition = &Definition{
		ID: id, ErrorMessages: o.ErrorMessages, IdempotencyTTL: o.IdempotencyTTL, Queue: o.Queue, Retry: o.Retry, Timeout: o.Timeout,
		Keys: TaskKeys{Concurrency: o.ConcurrencyKey != nil, Idempotency: o.IdempotencyKey != nil, Singleton: o.SingletonKey != nil},
	}
	if t.definition.Keys.Any() {
		t.definition.keys = t.computeEncoded
	}
	t.definition.err = t.validate()
	return t
}

func (t *Task[P]) validate() error {
	d := t.definition
	faults := []error{d.ID.Validate(), d.Queue.Validate(), d.Retry.Validate()}
	if d.Timeout < 0 {
		faults = append(faults, &Error{Code: ErrConfigurationInvalid, Message: "Timeout is negative", Hint: "0 means no timeout"})
	}
	if ttl := t.options.IdempotencyTTL; ttl < 0 && ttl != WhileActive {
		faults = append(faults, &Error{Code: ErrConfigurationInvalid, Message: "IdempotencyTTL is negative", Hint: "use WhileActive, 0 or a duration"})
	}
	err := errors.Join(faults...)
	if err == nil {
		return nil
	}
	texts := strings.ReplaceAll(err.Error(), "\n", "; ") // an error is one line
	return &Error{
		Code: ErrConfigurationInvalid, Message: fmt.Sprintf("task %q: %s", clip(string(d.ID), MaxIDBytes), texts),
		Hint: "correct the call of runlane.NewTask", Cause: err,
	}
}

// Definition returns the untyped part.
func (t *Task[P]) Definition() *Definition { return t.definition }

// Handle gives the task its handler. Method values carry dependencies: jobs.SendWelcome.Handle(mailer.SendWelcome).
//
// The handler runs at least once for every run, under a lease. nil succeeds, an error is retried as [Retry] says, [Permanent]
// is not, [Release] waits without failing, [RetryAfter] chooses the delay. When its context ends, context.Cause says why and
// the handler just returns ctx.Err().
func (t *Task[P]) Handle(fn func(ctx context.Context, a *Attempt, payload P) error) Handler {
	return Handler{
		Task: t.definition,
		Execute: func(ctx context.Context, a *Attempt, payload []byte) error {
			p, err := t.Decode(payload)
			if err != nil {
				return err
			}
			return fn(ctx, a, p)
		},
	}
}

// Decode reads a stored payload, for example of a run an operator looks at. A payload that does not decode is
// [ErrValidationFailed]; in an attempt that is a failure under the retry budget.
func (t *Task[P]) Decode(payload []byte) (P, error) {
	var p P
	if raw, ok := any(&p).(*json.RawMessage); ok {
		*raw = bytes.Clone(payload) // json.Unmarshal would drop the space around it
		return p, nil
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, &Error{
			Code: ErrValidationFailed, Message: fmt.Sprintf("payload of task %q does not decode into %T", t.definition.ID, p),
			Hint: "read older forms in an UnmarshalJSON of the payload type", Cause: err,
		}
	}
	return p, nil
}

// With pairs the task with a payload. It is encoded when the call is triggered; an error surfaces there.
func (t *Task[P]) With(payload P) Call {
	return Call{Task: t.definition, prepare: func() (Prepared, error) { return t.prepare(payload) }}
}

func (t *Task[P]) prepare(payload P) (Prepared, error) {
	b, err := encodePayload("payload", payload)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Payload: b, IdempotencyTTL: t.options.IdempotencyTTL}
	if err := t.compute(&p, payload); err != nil {
		return Prepared{}, err
	}
	return p, nil
}

// computeEncoded is for calls that have the payload only as it is stored.
func (t *Task[P]) computeEncoded(p *Prepared) error {
	payload, err := t.Decode(p.Payload)
	if err != nil {
		return err
	}
	return t.compute(p, payload)
}

// compute applies the key functions.
func (t *Task[P]) compute(p *Prepared, payload P) error {
	for _, key := range []struct {
		what string
		fn   func(P) string
		to   *string
	}{
		{"concurrency key", t.options.ConcurrencyKey, &p.ConcurrencyKey},
		{"idempotency key", t.options.IdempotencyKey, &p.IdempotencyKey},
		{"singleton key", t.options.SingletonKey, &p.SingletonKey},
	} {
		if key.fn == nil {
			continue
		}
		*key.to = key.fn(payload)
		if err := ValidateKey(key.what, *key.to); err != nil {
			return err
		}
	}
	return nil
}

// encodePayload leaves <, > and & alone and passes valid json.RawMessage through byte for byte: json.Marshal would rewrite both.
// what is payload or output.
func encodePayload(what string, payload any) (json.RawMessage, error) {
	b, err := json.RawMessage(nil), error(nil)
	if raw, ok := payload.(json.RawMessage); ok {
		b = bytes.Clone(raw)
		if !json.Valid(b) {
			return nil, invalidJSON(what, b)
		}
	} else if b, err = encode(payload); err != nil {
		return nil, &Error{
			Code: ErrValidationFailed, Message: fmt.Sprintf("%s of type %T does not encode as JSON", what, payload),
			Hint: "use a type that encoding/json takes; the cause says what it does not", Cause: err,
		}
	}
	if len(b) > MaxPayloadBytes {
		return nil, &Error{
			Code: ErrValidationFailed, Message: fmt.Sprintf("%s has %d bytes, more than %d", what, len(b), MaxPayloadBytes),
			Hint: "store the bulk elsewhere and pass a reference",
		}
	}
	return b, nil
}

// invalidJSON says where, never what: payloads do not belong into errors.
func invalidJSON(what string, b []byte) error {
	e := &Error{Code: ErrValidationFailed, Message: what + " is not valid JSON", Hint: "pass one complete JSON value"}
	var v any
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(b, &v)); ok {
		e.Message += fmt.Sprintf(" at byte %d", syntax.Offset)
	}
	return e
}

// Handler is a task that can execute here. Build one with [Task.Handle]; tools may build one by hand.
type Handler struct {
	Task    *Definition
	Execute func(ctx context.Context, a *Attempt, payload []byte) error
}

// Call is a task with a payload, not yet a run.
type Call struct {
	Task    *Definition
	prepare func() (Prepared, error)
}

// NewRawCall pairs a definition with an encoded payload, for command lines and HTTP endpoints. It makes the run that [Task.With]
// makes of the same payload: a task with key functions has them applied to the payload, which has to decode for that.
func NewRawCall(task *Definition, payload json.RawMessage) Call {
	return Call{Task: task, prepare: func() (Prepared, error) {
		b, err := encodePayload("payload", payload)
		if err != nil {
			return Prepared{}, err
		}
		p := Prepared{Payload: b, IdempotencyTTL: cmp.Or(task.IdempotencyTTL, DefaultIdempotencyTTL)}
		if task.keys == nil {
			return p, nil
		}
		if err := task.keys(&p); err != nil {
			return Prepared{}, err
		}
		return p, nil
	}}
}

// Prepared is an encoded call.
type Prepared struct {
	Payload        json.RawMessage
	IdempotencyKey string
	IdempotencyTTL time.Duration
	SingletonKey   string
	ConcurrencyKey string
}

// Prepare encodes the payload and computes the keys. Errors are [ErrValidationFailed], or [ErrConfigurationInvalid] for a bad
// definition. A panic of a key function or of the payload's own encoding is [ErrValidationFailed] too, with its stack among the
// details: it concerns this call and no other.
func (c Call) Prepare() (p Prepared, err error) {
	if c.prepare == nil || c.Task == nil {
		return Prepared{}, &Error{Code: ErrValidationFailed, Message: "empty call", Hint: "build calls with Task.With"}
	}
	if err := c.Task.Err(); err != nil {
		return Prepared{}, err
	}
	defer func() {
		if value := recover(); value != nil {
			message := fmt.Sprintf("preparing a call of task %q panicked", c.Task.ID)
			p, err = Prepared{}, recovered(message, "look at the key functions and at the encoding of the payload's type", value)
		}
	}()
	return c.prepare()
}

// recovered is a panic of the application's code. Its value is named only where it is a fault of the Go runtime: any other may quote
// user data.
func recovered(message, hint string, value any) *Error {
	e := &Error{Code: ErrValidationFailed, Message: message, Hint: hint, Meta: map[string]string{"stack": string(debug.Stack())}}
	if fault, ok := value.(runtime.Error); ok {
		defer func() { _ = recover() }() // it only calls itself one
		e.Message = message + ": " + fault.Error()
	}
	return e
}
