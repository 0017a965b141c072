package runlane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

func TestAttempt_ZeroValueWorks(t *testing.T) {
	t.Parallel()
	a := &runlane.Attempt{}
	a.Logger().Info("into the void")
	if a.Logger().Enabled(t.Context(), slog.LevelError) {
		t.Error("a zero attempt logs")
	}
	if err := a.SetOutput(map[string]int{"n": 1}); err != nil {
		t.Errorf("SetOutput: %v", err)
	}
	if err := a.Progress(t.Context(), "half way"); err != nil {
		t.Errorf("Progress: %v", err)
	}
	result, err := a.Trigger(t.Context(), runlane.NewTask[int]("t", nil).With(1), nil)
	if result != nil || !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("Trigger: %v, %v", result, err)
	}
	if (*runlane.Attempt)(nil).Logger() == nil {
		t.Error("no logger outside an attempt")
	}
}

func TestAttempt_SetOutput_ValidatesEvenWithoutAHost(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"does not encode": math.Inf(1), "invalid JSON": json.RawMessage(`{`),
	} {
		called := false
		hosted := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Reports: reports{
			output: func(json.RawMessage) error { called = true; return nil },
		}})
		for _, a := range []*runlane.Attempt{{}, hosted} {
			if err := a.SetOutput(value); !errors.Is(err, runlane.ErrValidationFailed) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if called {
			t.Errorf("%s: reached the host", name)
		}
	}
}

type triggerer struct{ calls []runlane.Call }

func (f *triggerer) Trigger(_ context.Context, call runlane.Call, options *runlane.TriggerOptions) (*runlane.TriggerResult, error) {
	f.calls = append(f.calls, call)
	return &runlane.TriggerResult{Run: &runlane.Run{ID: options.RunID}}, nil
}

func TestAttempt_PassesOnToItsHost(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var notes, outputs []string
	starts := &triggerer{}
	a := runlane.NewAttempt(runlane.Run{ID: "run_1"}, 2, runlane.AttemptHost{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Reports: reports{
			output:   func(b json.RawMessage) error { outputs = append(outputs, string(b)); return io.ErrShortWrite },
			progress: func(note string) error { notes = append(notes, note); return io.ErrClosedPipe },
		},
		Trigger: starts,
	})
	a.Logger().Info("hello")
	if a.Run.ID != "run_1" || a.Number != 2 || !strings.Contains(log.String(), "msg=hello") {
		t.Errorf("%+v logged %q", a, &log)
	}
	if err := a.SetOutput("<x>"); !errors.Is(err, io.ErrShortWrite) || len(outputs) != 1 || outputs[0] != `"<x>"` {
		t.Errorf("output %q, %v", outputs, err)
	}
	if err := a.Progress(t.Context(), "half"); !errors.Is(err, io.ErrClosedPipe) || len(notes) != 1 || notes[0] != "half" {
		t.Errorf("notes %q, %v", notes, err)
	}
	call := runlane.NewTask[int]("t", nil).With(1)
	result, err := a.Trigger(t.Context(), call, &runlane.TriggerOptions{RunID: "run_2"})
	if err != nil || result.Run.ID != "run_2" || len(starts.calls) != 1 || starts.calls[0].Task.ID != "t" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestAttemptFrom_FindsTheAttemptOfItsContext(t *testing.T) {
	t.Parallel()
	if a := runlane.AttemptFrom(t.Context()); a != nil {
		t.Errorf("outside an attempt: %v", a)
	}
	outer, inner := &runlane.Attempt{Number: 1}, &runlane.Attempt{Number: 2}
	ctx := runlane.WithAttempt(t.Context(), outer)
	deep, cancel := context.WithCancel(ctx)
	defer cancel()
	if runlane.AttemptFrom(deep) != outer {
		t.Error("the attempt is lost down the stack")
	}
	if runlane.AttemptFrom(runlane.WithAttempt(deep, inner)) != inner || runlane.AttemptFrom(ctx) != outer {
		t.Error("the nearest attempt counts")
	}
}

// reports are what a test does with outputs and notes.
type reports struct {
	output   func(json.RawMessage) error
	progress func(note string) error
}

func (r reports) ReportOutput(b json.RawMessage) error { return r.output(b) }

func (r reports) ReportProgress(_ context.Context, note string) error { return r.progress(note) }
