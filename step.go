package runlane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Step does remembered work: once fn has succeeded, later attempts of the run get its recorded result and do not call
// it again. What fails is not recorded: its error is returned as it is, and the work is tried again when Step is called
// again, by the same attempt or the next one.
//
// A result is recorded when fn has returned, so fn runs at least once, like a handler: give effects a key. It is JSON,
// as large as a payload may be; what Step returns has passed it, in the first attempt too.
//
// name is the identity of the work for the life of the run, also over deployments: steps may be added, removed and
// reordered. In a loop each round has its own name. A name that is used twice in an attempt is [ErrValidationFailed],
// and so are a step within a step, a name that an earlier attempt used for another kind of call, and a recorded result
// that another type gave and that R cannot hold.
//
// The context of fn also ends with the attempt. Steps may be called from several goroutines. On &Attempt{} fn is called
// and nothing is remembered. A storage that keeps no records is [ErrCapabilityUnsupported].
func Step[R any](ctx context.Context, a *Attempt, name string, fn func(ctx context.Context) (R, error)) (R, error) {
	var zero R
	t := reflect.TypeFor[R]()
	if k := t.Kind(); k == reflect.Chan || k == reflect.Func {
		return zero, stepInvalid(name, "return what JSON can hold", "has results of type %s", t)
	}
	call := StepCall{Name: name, Kind: StepKindStep, Type: typeText(t)}
	record, err := a.remember(ctx, call, func(ctx context.Context) (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return encodeResult(name, v)
	})
	if err != nil {
		return zero, err
	}
	return decodeResult[R](record, call.Type)
}

// Do is [Step] for work without a result.
func (a *Attempt) Do(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	call := StepCall{Name: name, Kind: StepKindStep}
	_, err := a.remember(ctx, call, func(ctx context.Context) (json.RawMessage, error) { return nil, fn(ctx) })
	return err
}

// Sleep returns nil once d has passed since the run first called it under this name. Until then its error is a
// suspension ([Suspended]): return it as it is, and the handler is called again from its beginning when the time has
// come; no worker waits meanwhile. The moment is recorded, so that no other attempt begins the pause anew, whatever it
// passes as d; an operator's resumption ends the pause. A pause of a second or less is slept by the attempt itself.
//
// d is at most [MaxReleaseDelay]; 0 and less is no pause. Names follow the rules of [Step], and a sleep within a step
// is [ErrValidationFailed]. On DynamoDB a pause of more than 15 minutes ends with the tick that follows, elsewhere at
// its millisecond. On &Attempt{} every pause suspends.
func (a *Attempt) Sleep(ctx context.Context, name string, d time.Duration) error {
	if err := a.outside(ctx, name); err != nil {
		return err
	}
	if a.host.Steps != nil {
		return a.host.Steps.Sleep(ctx, name, d)
	}
	if err := ValidateStepName(name); err != nil || d <= 0 {
		return err
	}
	until := time.Now().Add(d)
	return &ReleaseError{Reason: "sleeps: " + name, Waiting: &Waiting{For: []WaitingFor{WaitingTime}, Until: until}}
}

// Snapshot keeps v under a name as it is now, for later attempts and for operators ([Attempt.Snapshots]). An attempt
// that comes here again keeps the first. Names follow the rules of [Step], and v is encoded as a result.
func (a *Attempt) Snapshot(ctx context.Context, name string, v any) error {
	if a.host.Steps == nil {
		_, err := encodeResult(name, v)
		return err
	}
	call := StepCall{Name: name, Kind: StepKindSnapshot, Type: typeText(reflect.TypeOf(v))}
	_, err := a.host.Steps.Remember(ctx, call, func(context.Context) (json.RawMessage, error) {
		return encodeResult(name, v)
	})
	return err
}

// Snapshots returns what [Attempt.Snapshot] kept in this run, the latest first.
func (a *Attempt) Snapshots(ctx context.Context) ([]StepRecord, error) {
	if a.host.Steps == nil {
		return nil, nil
	}
	return a.host.Steps.Snapshots(ctx)
}

// Began returns the version of the task ([TaskOptions].Version) that the run began with: that of the first attempt that
// remembered anything, 0 if its code had none. A handler that has changed asks it, and goes on with a run in the way in
// which it began. An error is one of reading or keeping records, or the suspension of a run that a higher version has
// gone on with: return it. On &Attempt{} it is 0.
func (a *Attempt) Began(ctx context.Context) (int, error) {
	if a.host.Steps == nil {
		return 0, nil
	}
	return a.host.Steps.Began(ctx)
}

// Checkpoint remembers how far a loop has come, in the place of the last value of that name; the next attempt reads it
// with [Attempt.Restore]. Call it as often as you like: values are written at most once a second, and when the attempt
// ends, however it ends. A process that dies loses those of its last second. An error of the storage concerns this call
// alone. On &Attempt{} it does nothing.
func (a *Attempt) Checkpoint(ctx context.Context, name string, v any) error {
	result, err := encodeResult(name, v)
	if err != nil || a.host.Steps == nil {
		return err
	}
	call := StepCall{Name: name, Kind: StepKindCheckpoint, Type: typeText(reflect.TypeOf(v))}
	return a.host.Steps.Checkpoint(ctx, call, result)
}

// Restore reads the last checkpoint of that name into v, a pointer: of an earlier attempt, or of this one. Without one
// it returns false and leaves v alone. A value that v cannot hold is [ErrValidationFailed].
func (a *Attempt) Restore(ctx context.Context, name string, v any) (found bool, err error) {
	if a.host.Steps == nil {
		return false, nil
	}
	record, err := a.host.Steps.Restore(ctx, name)
	if err != nil || record == nil {
		return false, err
	}
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return false, stepInvalid(name, "pass a pointer", "is restored into a %T", v)
	}
	return true, fillResult(record, typeText(target.Type().Elem()), v)
}

// StepHost remembers for an attempt. It is for runtimes and test helpers.
type StepHost interface {
	// Remember returns the record of the call's name. Without one it does the work and records its result.
	Remember(ctx context.Context, call StepCall, work StepWork) (*StepRecord, error)
	// Sleep returns nil once the time since its first call is over.
	Sleep(ctx context.Context, name string, d time.Duration) error
	// Checkpoint records a result in the place of the last one of that name.
	Checkpoint(ctx context.Context, call StepCall, result json.RawMessage) error
	// Restore returns the last checkpoint of the name, nil without one.
	Restore(ctx context.Context, name string) (*StepRecord, error)
	// Snapshots are the run's, the latest first.
	Snapshots(ctx context.Context) ([]StepRecord, error)
	// Began is the version of the task that the run began with.
	Began(ctx context.Context) (int, error)
}

// StepWork is what a step does: it returns the result to record.
type StepWork func(ctx context.Context) (json.RawMessage, error)

// StepCall is what an attempt asks to be remembered.
type StepCall struct {
	Name string
	Kind StepKind
	Type string // Go's name of the result's type
}

// within is the step that a context belongs to.
type within struct {
	attempt *Attempt
	name    string
}

type stepKey struct{}

// outside refuses what stands within a step of the same attempt.
func (a *Attempt) outside(ctx context.Context, name string) error {
	if outer, ok := ctx.Value(stepKey{}).(within); ok && outer.attempt == a {
		return stepInvalid(name, "call one after the other, or let one step do all of it",
			"is called within step %q", outer.name)
	}
	return nil
}

func (a *Attempt) remember(ctx context.Context, call StepCall, work StepWork) (*StepRecord, error) {
	if err := a.outside(ctx, call.Name); err != nil {
		return nil, err
	}
	inside := func(ctx context.Context) (json.RawMessage, error) {
		return work(context.WithValue(ctx, stepKey{}, within{a, call.Name}))
	}
	if a.host.Steps != nil {
		return a.host.Steps.Remember(ctx, call, inside)
	}
	if err := ValidateStepName(call.Name); err != nil {
		return nil, err
	}
	result, err := inside(ctx)
	if err != nil {
		return nil, err
	}
	return &StepRecord{Name: call.Name, Kind: call.Kind, Type: call.Type, Result: result}, nil
}

// ValidateStepName checks the name of a record: 1 to [MaxStepNameBytes] bytes of printable text. A bad one is
// [ErrValidationFailed].
func ValidateStepName(name string) error {
	fault := textFault(name, -1)
	switch {
	case name == "":
		fault = "is empty"
	case len(name) > MaxStepNameBytes:
		fault = fmt.Sprintf("has %d bytes", len(name))
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: "a step's name " + fault,
		Hint:    fmt.Sprintf("use 1 to %d bytes of printable text that never change their meaning", MaxStepNameBytes),
	}
}

func stepInvalid(name, hint, format string, args ...any) error {
	return &Error{
		Code:    ErrValidationFailed,
		Message: fmt.Sprintf("step %q ", name) + fmt.Sprintf(format, args...),
		Hint:    hint,
	}
}

// typeText is Go's name of a type, as a record keeps it.
func typeText(t reflect.Type) string {
	if t == nil {
		return ""
	}
	text := t.String()
	if len(text) > MaxStepTypeBytes || textFault(text, -1) != "" {
		text = strings.ToValidUTF8(text[:min(len(text), MaxStepTypeBytes)], "")
	}
	return text
}

// encodeResult survives a panic of the value's own encoding.
func encodeResult(name string, v any) (b json.RawMessage, err error) {
	defer func() {
		if value := recover(); value != nil {
			b, err = nil, recovered(
				fmt.Sprintf("encoding a result of type %T panicked", v),
				"look at the encoding of that type",
				value,
			)
		}
	}()
	return encodePayload(fmt.Sprintf("result of step %q", name), v)
}

func decodeResult[R any](record *StepRecord, typ string) (R, error) {
	var v R
	if err := fillResult(record, typ, &v); err != nil {
		var zero R
		return zero, err
	}
	return v, nil
}

// fillResult decodes a record into v, a pointer. What a value of another type recorded is taken only where nothing is
// lost: encoded again, it is the same JSON.
func fillResult(record *StepRecord, typ string, v any) (err error) {
	if record.Fault != "" {
		return &Error{
			Code:      ErrPayloadUnreadable,
			Message:   fmt.Sprintf("the result of step %q cannot be read here: %s", record.Name, record.Fault),
			Retryable: true,
			Hint:      "give this process the codec and the keys of the one that recorded it",
		}
	}
	defer func() {
		if value := recover(); value != nil {
			err = recovered(
				fmt.Sprintf("decoding a result of type %s panicked", typ),
				"look at the decoding of that type",
				value,
			)
		}
	}()
	if err = json.Unmarshal(record.Result, v); err == nil && record.Type != typ && record.Type != "" {
		err = sameWhenEncoded(record.Result, v)
	}
	if err == nil {
		return nil
	}
	return &Error{
		Code: ErrValidationFailed,
		Message: fmt.Sprintf("step %q has a result of type %s, recorded by attempt %d, which a %s cannot hold",
			record.Name, record.Type, record.Attempt, typ),
		Hint:  "a name never changes its meaning: give the new work another name",
		Cause: err,
	}
}

var errOtherJSON = errors.New("encoded again it is other JSON")

func sameWhenEncoded(recorded json.RawMessage, v any) error {
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var before, after any
	if err := errors.Join(decodeNumbers(recorded, &before), decodeNumbers(again, &after)); err != nil {
		return err
	}
	if !reflect.DeepEqual(before, after) {
		return errOtherJSON
	}
	return nil
}

// decodeNumbers keeps numbers as they are written.
func decodeNumbers(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
