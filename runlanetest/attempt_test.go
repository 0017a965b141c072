package runlanetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

func TestNewAttempt_ShowsWhatTheHandlerDid(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{
		Number: 3, Run: runlane.Run{ID: "run_7", Meta: map[string]string{"tenant": "b"}, TraceCarrier: map[string]string{"traceparent": "00-1"}},
	})
	err := welcomeTask.Handle(func(ctx context.Context, a *runlane.Attempt, w welcome) error {
		a.Logger().Info("sending", "user", w.UserID)
		a.Logger().Debug("not kept")
		for _, note := range []string{"half way", "done"} {
			if err := a.Progress(ctx, note); err != nil {
				return err
			}
		}
		if _, err := a.Trigger(ctx, echo.With("follow"), nil); err != nil {
			return err
		}
		return errors.Join(a.SetOutput("first"), a.SetOutput(map[string]int{"number": a.Number, "failures": a.Run.Counters.Failures}))
	}).Execute(t.Context(), a.Attempt, []byte(`{"userId":"u_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(a.Output()); got != `{"failures":2,"number":3}` {
		t.Errorf("output is %s", got)
	}
	if got := a.Notes(); !slices.Equal(got, []string{"half way", "done"}) {
		t.Errorf("notes are %q", got)
	}
	if got := a.Logs(); !slices.Equal(got, []string{`level=INFO msg=sending user=u_1`}) {
		t.Errorf("logs are %q", got)
	}
	runlanetest.RequirePayloads(t, a.Recorder, echo, "follow")
	child := a.Recorder.Calls()[0].Result.Run
	if child.Source.RunID != "run_7" || child.TraceCarrier["traceparent"] != "00-1" || a.Run.Meta["tenant"] != "b" {
		t.Errorf("the child is %+v", child)
	}
}

func TestNewAttempt_Defaults(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, nil)
	if a.Number != 1 || a.Run.ID != "run_test" || a.Run.Status != runlane.StatusRunning || a.Run.Counters != (runlane.Counters{Attempts: 1}) ||
		a.Run.Environment != runlane.DefaultEnvironment {
		t.Errorf("attempt %d of %+v", a.Number, a.Run)
	}
	if a.Output() != nil || a.Notes() != nil || a.Logs() != nil || len(a.Recorder.Calls()) != 0 {
		t.Error("there is something before anything was done")
	}
}

func TestAttempt_Execute_IsWhatARuntimeDoes(t *testing.T) {
	t.Parallel()
	type dated struct {
		At     time.Time
		hidden string
	}
	task := runlane.NewTask("dated", &runlane.TaskOptions[dated]{IdempotencyKey: func(dated) string { return "k" }})
	a := runlanetest.NewAttempt(t, nil)
	now := time.Now()
	err := a.Execute(t.Context(), task.Handle(func(ctx context.Context, given *runlane.Attempt, d dated) error {
		if d.At.String() == now.String() || !d.At.Equal(now) || d.hidden != "" {
			t.Errorf("the payload was not encoded: %v %q", d.At, d.hidden)
		}
		if runlane.AttemptFrom(ctx) != given || given.Run.TaskID != "dated" || given.Run.IdempotencyKey != "k" || given.Run.Queue != "default" {
			t.Errorf("the run is %+v", given.Run)
		}
		return runlane.Release(time.Hour, "later")
	}), task.With(dated{now, "lost"}))
	if release, ok := errors.AsType[*runlane.ReleaseError](err); !ok || release.Delay != time.Hour {
		t.Errorf("it returned %v", err)
	}
	for what, call := range map[string]runlane.Call{"an empty call": {}, "another task's": echo.With("x")} {
		if err := a.Execute(t.Context(), task.Handle(nil), call); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAttempt_Progress_RefusesWhatARuntimeRefuses(t *testing.T) {
	t.Parallel()
	a := runlanetest.NewAttempt(t, nil)
	for _, note := range []string{strings.Repeat("x", runlane.MaxReasonBytes+1), "\xff"} {
		if err := a.Progress(t.Context(), note); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%d bytes: %v", len(note), err)
		}
	}
	if err := a.SetOutput(make(chan int)); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("an output that does not encode: %v", err)
	}
	if a.Notes() != nil || a.Output() != nil {
		t.Error("something was kept")
	}
}

func TestNewAttempt_SharedRecorder(t *testing.T) {
	t.Parallel()
	var r runlanetest.Recorder
	handler := echo.Handle(func(ctx context.Context, a *runlane.Attempt, text string) error {
		_, err := a.Trigger(ctx, welcomeTask.With(welcome{text}), nil) // the key makes the second attempt start nothing
		return err
	})
	for number := range 2 {
		a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{Number: number + 1, Recorder: &r})
		if err := a.Execute(t.Context(), handler, echo.With("u_1")); err != nil {
			t.Fatal(err)
		}
	}
	runlanetest.RequirePayloads(t, &r, welcomeTask, welcome{"u_1"})
	if calls := r.Calls(); len(calls) != 2 || calls[1].Result.Outcome != runlane.TriggerReturnedExisting {
		t.Errorf("calls are %+v", calls)
	}
}
