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

// Step does remembered work: once fn has succeeded, later attempts of the run get the recorded result without calling
// fn. A failure is not recorded: Step returns fn's error unchanged, and the next call of Step, in this attempt or a
// later one, tries again.
//
// The result is recorded after fn returns, so fn runs at least once, like a handler: give its effects a key. Results
// are JSON, with the size limit of payloads. Step always returns the decoded JSON, in the first attempt too.
//
// name identifies the work for the life of the run, across deployments: steps may be added, removed and reordered. In a
// loop each round needs its own name. These are [ErrValidationFailed]: a name used twice in an attempt, a step within a
// step, a name that an earlier attempt used for another kind of call, and a recorded result of another type that R
// cannot hold.
//
// fn's context also ends with the attempt. Steps may be called from several goroutines. On &Attempt{}, fn is called and
// nothing is remembered. A storage without records returns [ErrCapabilityUnsupported].
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
// suspension ([Suspended]): return it unchanged, and the handler runs again from its beginning at that time; no worker
// waits meanwhile. The end is recorded, so later attempts do not restart the pause, whatever d they pass; an operator's
// resumption ends it. The attempt itself sleeps through a pause of a second or less.
//
// d is at most [MaxReleaseDelay]; 0 or less is no pause. Names follow the rules of [Step], and a sleep within a step is
// [ErrValidationFailed]. On DynamoDB a pause of more than 15 minutes ends with the next tick, elsewhere on the
// millisecond. On &Attempt{} every pause suspends.
func (a *Attempt) Sleep(ctx context.Context, name string, d time.Duration) error {
	if err := a.refuseWithinStep(ctx, name); err != nil {
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

// Snapshot keeps the current value of v under a name, for later attempts and for operators ([Attempt.Snapshots]). Later
// attempts keep the first value. Names follow the rules of [Step]; v is encoded like a result.
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

// Snapshots returns the run's records of [Attempt.Snapshot], latest first.
func (a *Attempt) Snapshots(ctx context.Context) ([]StepRecord, error) {
	if a.host.Steps == nil {
		return nil, nil
	}
	return a.host.Steps.Snapshots(ctx)
}

// Began returns the task version ([TaskOptions].Version) with which the run began: the version of the first attempt
// that remembered anything, 0 without one. A changed handler uses it to continue older runs in the old way. Return its
// errors: they come from reading or writing records, or suspend a run that a higher version has continued. On
// &Attempt{} it is 0.
func (a *Attempt) Began(ctx context.Context) (int, error) {
	if a.host.Steps == nil {
		return 0, nil
	}
	return a.host.Steps.Began(ctx)
}

// Checkpoint remembers the progress of a loop and replaces the last value of that name; the next attempt reads it with
// [Attempt.Restore]. Call it as often as you like: values are written at most once a second, and at the end of the
// attempt, however it ends. A process that dies loses the values of its last second. A storage error affects only this
// call. On &Attempt{} it does nothing.
func (a *Attempt) Checkpoint(ctx context.Context, name string, v any) error {
	result, err := encodeResult(name, v)
	if err != nil || a.host.Steps == nil {
		return err
	}
	call := StepCall{Name: name, Kind: StepKindCheckpoint, Type: typeText(reflect.TypeOf(v))}
	return a.host.Steps.Checkpoint(ctx, call, result)
}

// Restore reads the last checkpoint of that name, from an earlier attempt or this one, into v, a pointer. Without one
// it returns false and does not change v. A value that v cannot hold is [ErrValidationFailed].
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

// StepHost keeps the records of an attempt. It is for runtimes and test helpers.
type StepHost interface {
	// Remember returns the record with the call's name. Without one it does the work and records its result.
	Remember(ctx context.Context, call StepCall, work StepWork) (*StepRecord, error)
	// Sleep returns nil once d has passed since its first call.
	Sleep(ctx context.Context, name string, d time.Duration) error
	// Checkpoint records a result and replaces the last one of that name.
	Checkpoint(ctx context.Context, call StepCall, result json.RawMessage) error
	// Restore returns the last checkpoint of the name, or nil.
	Restore(ctx context.Context, name string) (*StepRecord, error)
	// Snapshots returns the run's snapshots, latest first.
	Snapshots(ctx context.Context) ([]StepRecord, error)
	// Began returns the task version with which the run began.
	Began(ctx context.Context) (int, error)
}

// StepWork does the work of a step and returns the result to record.
type StepWork func(ctx context.Context) (json.RawMessage, error)

// StepCall is an attempt's request to remember work.
type StepCall struct {
	Name string
	Kind StepKind
	Type string // Go's name of the result's type
}

// within identifies the step to which a context belongs.
type within struct {
	attempt *Attempt
	name    string
}

type stepKey struct{}

// refuseWithinStep rejects calls within a step of the same attempt.
func (a *Attempt) refuseWithinStep(ctx context.Context, name string) error {
	if outer, ok := ctx.Value(stepKey{}).(within); ok && outer.attempt == a {
		return stepInvalid(name, "call one after the other, or let one step do all of it",
			"is called within step %q", outer.name)
	}
	return nil
}

func (a *Attempt) remember(ctx context.Context, call StepCall, work StepWork) (*StepRecord, error) {
	if err := a.refuseWithinStep(ctx, call.Name); err != nil {
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

// ValidateStepName checks the name of a record: 1 to [MaxStepNameBytes] bytes of printable text. The error is
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

// typeText returns Go's name of a type, cut for a record.
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

// encodeResult recovers from a panic in v's own encoding.
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

// fillResult decodes a record into v, a pointer. A result recorded from another type is accepted only if nothing is
// lost: encoded again it must be the same JSON.
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
		err = checkRoundTrip(record.Result, v)
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

var errOtherJSON = errors.New("encoded again, it is different JSON")

func checkRoundTrip(recorded json.RawMessage, v any) error {
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

// decodeNumbers decodes b and keeps numbers in their original form.
func decodeNumbers(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
