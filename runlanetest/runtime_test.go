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

var errMail = errors.New("the mail server is away")

// echo is a task without rules.
var echo = runlane.NewTask[string]("echo", nil)

func succeed(context.Context, *runlane.Attempt, string) error { return nil }

func TestRun_RetriesReleasesAndRetryAfter_TakeNoTimeAndAreExact(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("report", &runlane.TaskOptions[string]{
		Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Base: time.Hour, Max: 48 * time.Hour}}, // with jitter
	})
	run := runlanetest.Run(t, task.Handle(func(_ context.Context, a *runlane.Attempt, day string) error {
		switch a.Number {
		case 1, 2:
			return errMail
		case 3:
			return runlane.Release(90*24*time.Hour, "the quarter is not over")
		case 4:
			return runlane.RetryAfter(10*time.Minute, errMail)
		default:
			return a.SetOutput(day)
		}
	}), task.With("monday"))
	runlanetest.RequireTransitions(t, run,
		"triggered",
		"attempt 1 started",
		"attempt 1 failed: task_failed, retry in 1h",
		"attempt 2 started",
		"attempt 2 failed: task_failed, retry in 2h",
		"attempt 3 started",
		"attempt 3 released for 90d: the quarter is not over",
		"attempt 4 started",
		"attempt 4 failed: task_failed, retry in 10m",
		"attempt 5 started",
		"attempt 5 succeeded",
	)
	if took := run.FinishedAt.Sub(run.CreatedAt); took != 90*24*time.Hour+3*time.Hour+10*time.Minute {
		t.Errorf("the run took %s", took)
	}
	output := ""
	if ok, err := run.DecodeOutput(&output); !ok || err != nil || output != "monday" || run.Status != runlane.StatusSucceeded {
		t.Errorf("%s with output %q, %v, %v", run.Status, output, ok, err)
	}
}

func TestRun_Failures_AreThoseOfARuntime(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("fragile", &runlane.TaskOptions[string]{Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Minute)}})
	for how, want := range map[string][]string{
		"permanent": {"triggered", "attempt 1 started", "attempt 1 failed: task_failed"},
		"coded":     {"triggered", "attempt 1 started", "attempt 1 failed: validation_failed"},
		"panic": {
			"triggered", "attempt 1 started", "attempt 1 failed: task_panicked, retry in 1m", "attempt 2 started",
			"attempt 2 failed: task_panicked, retry in 1m", "attempt 3 started", "attempt 3 failed: task_panicked",
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			run := runlanetest.Run(t, task.Handle(func(_ context.Context, _ *runlane.Attempt, how string) error {
				switch how {
				case "permanent":
					return runlane.Permanent(errMail)
				case "coded":
					return runlane.Permanent(&runlane.Error{Code: runlane.ErrValidationFailed, Message: "no such user"})
				default:
					panic("out of coffee")
				}
			}), task.With(how))
			runlanetest.RequireTransitions(t, run, want...)
		})
	}
}

func TestRun_FollowUps_AreChildrenAndWait(t *testing.T) {
	t.Parallel()
	run := runlanetest.Run(t, echo.Handle(func(ctx context.Context, a *runlane.Attempt, text string) error {
		for i, follow := range []string{"b", "c"} {
			if _, err := a.Trigger(ctx, runlane.NewTask[string]("other", nil).With(text+follow), &runlane.TriggerOptions{
				Delay: time.Duration(i) * time.Hour,
			}); err != nil {
				return err
			}
		}
		return nil
	}), echo.With("a"))
	var got []string
	for _, child := range run.Children {
		got = append(got, string(child.TaskID)+" "+string(child.Payload)+" "+string(child.Status)+" "+string(child.Source.RunID))
	}
	if want := []string{`other "ab" queued run_000001`, `other "ac" scheduled run_000001`}; !slices.Equal(got, want) {
		t.Errorf("children are %q", got)
	}
}

func TestRun_IsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	once := func() string {
		task := runlane.NewTask("twice", &runlane.TaskOptions[string]{Retry: runlane.Retry{MaxAttempts: 2}})
		run := runlanetest.Run(t, task.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			return a.SetOutput(map[string]any{"run": a.Run.ID, "created": a.Run.CreatedAt})
		}), task.With("x"))
		return string(run.ID) + run.String()
	}
	first := once()
	if second := once(); first != second {
		t.Errorf("first:\n%s\nsecond:\n%s", first, second)
	}
	if want := `{"created":"2026-01-01T00:00:00Z","run":"RUN"}`; !strings.Contains(first, want) {
		t.Errorf("no %s in\n%s", want, first)
	}
}

func TestHistories_RerunAndManualRetry_SayHowTheyBegan(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		echo.Handle(func(context.Context, *runlane.Attempt, string) error { return errMail }),
	}})
	id := rt.MustTrigger(echo.With("x"), nil).ID
	rt.Settle()
	if _, err := rt.Runs().Retry(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Runs().Rerun(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	rt.Settle()
	var begins []string
	for _, h := range rt.Histories("echo") {
		begins = append(begins, h.Transitions()[0])
	}
	if slices.Sort(begins); !slices.Equal(begins, []string{"rerun", "retried by hand", "triggered"}) {
		t.Errorf("they begin with %q", begins)
	}
	if children := rt.History(id).Children; len(children) != 2 {
		t.Errorf("%d children", len(children))
	}
}

func TestNew_Middleware_WrapsEveryAttempt(t *testing.T) {
	t.Parallel()
	type key struct{}
	rt := runlanetest.New(t, &runlanetest.Options{
		Handlers: []runlane.Handler{echo.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
			return a.SetOutput(ctx.Value(key{}))
		})},
		Middleware: []runlane.Middleware{func(ctx context.Context, _ *runlane.Attempt, next func(context.Context) error) error {
			return next(context.WithValue(ctx, key{}, "wrapped"))
		}},
	})
	if run := rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID); string(run.Output) != `"wrapped"` {
		t.Errorf("output is %s", run.Output)
	}
}

func TestRun_InABenchmark(t *testing.T) {
	t.Parallel()
	result := testing.Benchmark(func(b *testing.B) {
		for range min(b.N, 10) {
			runlanetest.Run(b, echo.Handle(succeed), echo.With("x"))
		}
	})
	if result.N == 0 {
		t.Error("the benchmark failed")
	}
}
