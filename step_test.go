package runlane_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// remembers is a host that has one record.
type remembers struct{ record *runlane.StepRecord }

func (r remembers) Remember(
	ctx context.Context, call runlane.StepCall, work runlane.StepWork,
) (*runlane.StepRecord, error) {
	if r.record != nil {
		return r.record, nil
	}
	result, err := work(ctx)
	return &runlane.StepRecord{Name: call.Name, Kind: call.Kind, Type: call.Type, Result: result}, err
}

func (remembers) Checkpoint(context.Context, runlane.StepCall, json.RawMessage) error { return nil }

func (remembers) Sleep(context.Context, string, time.Duration) error { return nil }

func (r remembers) Restore(context.Context, string) (*runlane.StepRecord, error) {
	return r.record, nil
}

func (remembers) Began(context.Context) (int, error) { return 2, nil }

func (remembers) Snapshots(context.Context) ([]runlane.StepRecord, error) { return nil, nil }

func remembered(record *runlane.StepRecord) *runlane.Attempt {
	return runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Steps: remembers{record}})
}

// On a zero attempt steps are executed and nothing is remembered.
func TestStep_OnAZeroAttempt(t *testing.T) {
	t.Parallel()
	ctx, a, calls := t.Context(), &runlane.Attempt{}, 0
	for range 2 {
		got, err := runlane.Step(ctx, a, "n", func(context.Context) (int, error) { calls++; return calls, nil })
		if err != nil || got != calls {
			t.Errorf("%d, %v", got, err)
		}
	}
	var v int
	found, err := a.Restore(ctx, "rows", &v)
	snapshots, listed := a.Snapshots(ctx)
	if err := errors.Join(err, listed, a.Checkpoint(ctx, "rows", 1), a.Snapshot(ctx, "s", 1)); err != nil || found || snapshots != nil {
		t.Errorf("%t, %v, %v", found, snapshots, err)
	}
	err = a.Do(ctx, "outer", func(ctx context.Context) error {
		return a.Do(ctx, "inner", func(context.Context) error { return nil })
	})
	if !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a step within a step: %v", err)
	}
	other := &runlane.Attempt{} // of a run that the step executes
	err = a.Do(ctx, "outer", func(ctx context.Context) error {
		return other.Do(ctx, "of another run", func(context.Context) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
	for d, suspends := range map[time.Duration]bool{0: false, time.Hour: true} {
		if err := a.Sleep(ctx, "pause", d); runlane.Suspended(err) != suspends || !suspends && err != nil {
			t.Errorf("a pause of %s: %v", d, err)
		}
	}
	if err := a.Do(ctx, "", func(context.Context) error { return nil }); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("without a name: %v", err)
	}
}

type panicking struct{ Fail bool }

func (panicking) MarshalJSON() ([]byte, error) { panic("no JSON") }
func (*panicking) UnmarshalJSON([]byte) error  { panic("no JSON") }

// A result that cannot be encoded or decoded is the step's error, with the code of bad input.
func TestStep_ResultsThatAreNone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for what, err := range map[string]error{
		"a number that JSON has not": errorOf(runlane.Step(ctx, remembered(nil), "n", func(context.Context) (float64, error) { return math.NaN(), nil })),
		"an encoding that panics":    errorOf(runlane.Step(ctx, remembered(nil), "n", func(context.Context) (panicking, error) { return panicking{}, nil })),
		"a func":                     errorOf(runlane.Step(ctx, remembered(nil), "n", func(context.Context) (func(), error) { return nil, nil })),
		"a decoding that panics": errorOf(runlane.Step(ctx, remembered(&runlane.StepRecord{Name: "n", Result: []byte("1")}), "n",
			func(context.Context) (panicking, error) { return panicking{}, nil })),
		"no JSON": errorOf(runlane.Step(ctx, remembered(&runlane.StepRecord{Name: "n", Result: []byte("{")}), "n",
			func(context.Context) (int, error) { return 0, nil })),
	} {
		if !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := runlane.Step(ctx, remembered(&runlane.StepRecord{Name: "n", Fault: "no key"}), "n", func(context.Context) (int, error) { return 0, nil })
	if !errors.Is(err, runlane.ErrPayloadUnreadable) {
		t.Errorf("without its key: %v", err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// A record of another type is taken exactly when nothing of it is lost.
func TestStep_RecordsOfAnotherType(t *testing.T) {
	t.Parallel()
	type whole struct {
		ID string `json:"id"`
		N  int    `json:"n,omitempty"`
	}
	for result, taken := range map[string]bool{
		`{"id":"a"}`:            true,
		`{ "id" : "a", "n": 1}`: true,
		`{}`:                    false, // would be an id of nothing
		`{"id":"a","x":1}`:      false,
		`{"id":"a","n":1.0}`:    false,
		`null`:                  false,
		`[]`:                    false,
	} {
		_, err := runlane.Step(t.Context(), remembered(&runlane.StepRecord{Name: "s", Type: "shop.Other", Attempt: 1, Result: []byte(result)}), "s",
			func(context.Context) (whole, error) { return whole{}, nil })
		if (err == nil) != taken {
			t.Errorf("%s: %v", result, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "shop.Other") || !strings.Contains(err.Error(), "whole")) {
			t.Errorf("%s: the error names no types: %v", result, err)
		}
	}
}

// Anything may stand in a record: it is an error with a code, or a value that is the same JSON.
func FuzzStepResult(f *testing.F) {
	for _, result := range []string{`{"a":1}`, `null`, `1e400`, `"\ud800"`, `{"a":{"a":[]}}`, `{`, "", "\x01\x01k"} {
		f.Add([]byte(result), "shop.Receipt")
	}
	f.Fuzz(func(t *testing.T, result []byte, typ string) {
		a := remembered(&runlane.StepRecord{Name: "s", Type: typ, Result: result})
		got, err := runlane.Step(t.Context(), a, "s", func(context.Context) (map[string]any, error) { return nil, nil })
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Fatal(err)
		}
		if err != nil && got != nil {
			t.Fatalf("%v with an error", got)
		}
		var again map[string]any
		if found, err := a.Restore(t.Context(), "s", &again); err == nil && !found {
			t.Fatal("not found")
		}
	})
}
