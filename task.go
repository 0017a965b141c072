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
	"time"
)

// WhileActive as an idempotency TTL frees the key as soon as the run is terminal.
const WhileActive time.Duration = -1

// Task is a durable name with a payload type. It has no handler, so programs that only trigger need not link one.
//
// Payloads are encoded with encoding/json: a payload type controls its form with MarshalJSON and reads older forms with
// UnmarshalJSON. Unknown fields are ignored. Task[json.RawMessage] keeps bytes exactly.
type Task[P any] struct {
	definition *Definition
	options    TaskOptions[P]
}

// NewTask defines a task. P is inferred from the options or given: NewTask[Welcome]("emails.welcome", nil).
func NewTask[P any](id TaskID, options *TaskOptions[P]) *Task[P] {
	t := &Task[P]{}
	if options != nil {
		t.options = *options
	}
	t.definition = t.options.definition(id)
	if t.definition.Keys.Any() {
		t.definition.keys = t.computeEncoded
	}
	return t
}

// ID returns the task's ID, by which it is stored, listed and filtered.
func (t *Task[P]) ID() TaskID { return t.definition.ID }

// Definition returns the part that does not depend on P.
func (t *Task[P]) Definition() *Definition { return t.definition }

// Handle gives the task its handler. Method values carry dependencies: jobs.SendWelcome.Handle(mailer.SendWelcome).
//
// The handler runs at least once for every run, under a lease. Returning nil succeeds; an error is retried as [Retry]
// says, [Permanent] is not retried, [RetryAfter] chooses the delay, and [Release] waits without failing. When ctx ends,
// context.Cause gives the reason and the handler just returns ctx.Err(). A runtime does not open with a nil fn.
func (t *Task[P]) Handle(fn func(ctx context.Context, a *Attempt, payload P) error) Handler {
	if fn == nil {
		return Handler{Task: t.definition}
	}
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

// Decode reads a stored payload, for example of a run that an operator inspects. If it does not decode, the error is
// [ErrValidationFailed]; in an attempt this is a failure, retried as [Retry] says.
func (t *Task[P]) Decode(payload []byte) (P, error) {
	var p P
	if raw, ok := any(&p).(*json.RawMessage); ok {
		*raw = bytes.Clone(payload) // json.Unmarshal would drop surrounding space
		return p, nil
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, &Error{
			Code:    ErrValidationFailed,
			Message: fmt.Sprintf("payload of task %q does not decode into %T", t.definition.ID, p),
			Hint:    "correct the payload; older forms of stored ones are read in an UnmarshalJSON of its type",
			Cause:   err,
		}
	}
	return p, nil
}

// With pairs the task with a payload. The payload is encoded when the call is triggered, and errors surface there.
func (t *Task[P]) With(payload P) Call {
	return Call{Task: t.definition, prepare: func() (Prepared, error) { return t.prepare(payload) }}
}

func (t *Task[P]) prepare(payload P) (Prepared, error) {
	b, err := encodePayload("payload", payload)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Payload: b, IdempotencyTTL: t.definition.IdempotencyTTL}
	if err := t.compute(&p, payload); err != nil {
		return Prepared{}, err
	}
	return p, nil
}

// computeEncoded applies the key functions when only the encoded payload is known.
func (t *Task[P]) computeEncoded(p *Prepared) error {
	payload, err := t.Decode(p.Payload)
	if err != nil {
		return err
	}
	return t.compute(p, payload)
}

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

// encodePayload keeps <, > and & unescaped and passes valid json.RawMessage through byte for byte; json.Marshal would
// rewrite both. what is "payload" or "output".
func encodePayload(what string, payload any) (json.RawMessage, error) {
	b, err := json.RawMessage(nil), error(nil)
	if raw, ok := payload.(json.RawMessage); ok {
		b = bytes.Clone(raw)
		if !json.Valid(b) {
			return nil, invalidJSON(what, b)
		}
	} else if b, err = encode(payload); err != nil {
		return nil, &Error{
			Code:    ErrValidationFailed,
			Message: fmt.Sprintf("%s of type %T does not encode as JSON", what, payload),
			Hint:    "use a type that encoding/json can encode; see the cause",
			Cause:   err,
		}
	}
	if len(b) > MaxBodyBytes { // a runtime refuses less, see core.Options.MaxBodyBytes
		return nil, &Error{
			Code:    ErrValidationFailed,
			Message: fmt.Sprintf("%s has %d bytes, more than %d", what, len(b), MaxBodyBytes),
			Hint:    "store the bulk elsewhere and pass a reference",
		}
	}
	return b, nil
}

// invalidJSON gives the position of the fault and quotes nothing, because errors must not contain payloads.
func invalidJSON(what string, b []byte) error {
	e := &Error{Code: ErrValidationFailed, Message: what + " is not valid JSON", Hint: "pass one complete JSON value"}
	var v any
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(b, &v)); ok {
		e.Message += fmt.Sprintf(" at byte %d", syntax.Offset)
	}
	return e
}

// Handler is a task with its code. Build one with [Task.Handle]; tools may build one by hand.
type Handler struct {
	Task    *Definition
	Execute func(ctx context.Context, a *Attempt, payload []byte) error
	// Accepts reports whether this process can execute a run with this payload. nil accepts all. Rejected runs are left
	// to other processes, like runs of a task without a handler: nothing is written. It runs before each attempt, so it
	// must be quick.
	Accepts func(payload []byte) bool
}

// Call is a task with a payload, before it becomes a run.
type Call struct {
	Task    *Definition
	prepare func() (Prepared, error)
}

// NewRawCall pairs a definition with an encoded payload, for command lines and HTTP endpoints. It makes the same run as
// [Task.With] with this payload. If the task has key functions, the payload must decode.
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

// Prepare encodes the payload and computes the keys. Errors are [ErrValidationFailed], or [ErrConfigurationInvalid] for
// a bad definition. A panic in a key function or in the payload's encoding becomes [ErrValidationFailed] with the stack
// in its meta.
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
			p, err = Prepared{}, recovered(
				message,
				"look at the key functions and at the encoding of the payload's type",
				value,
			)
		}
	}()
	return c.prepare()
}

// recovered returns the error for a panic of application code. It includes only the text of Go runtime errors, because
// other values may quote user data.
func recovered(message, hint string, value any) *Error {
	e := &Error{
		Code:    ErrValidationFailed,
		Message: message,
		Hint:    hint,
		Meta:    map[string]string{"stack": string(debug.Stack())},
	}
	if fault, ok := value.(runtime.Error); ok {
		defer func() { _ = recover() }() // an application's type may implement runtime.Error and panic in Error
		e.Message = message + ": " + fault.Error()
	}
	return e
}
