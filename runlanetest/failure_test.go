package runlanetest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

func TestRun_ThatNeverEnds_SaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	got := spyOn(t, func(t testing.TB) {
		rt := runlanetest.New(t, &runlanetest.Options{MaxSteps: 20, Handlers: []runlane.Handler{
			echo.Handle(func(context.Context, *runlane.Attempt, string) error { return runlane.Release(time.Hour, "no mailbox") }),
		}})
		rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID)
	})
	wantText(t, got, `
runlanetest: run run_000001 of task "echo" does not end: 20 attempts and jumps of the clock led to no end (Options.MaxSteps)
it is released, 10h after its trigger, and waits for: time, until +11h. Its handler released it in attempt 11 and it resumes then. Cancel ends it before.
its transitions:
    … 11 more
    +5h   attempt 6 started
    +5h   attempt 6 released for 1h: no mailbox
    +6h   attempt 7 started
    +6h   attempt 7 released for 1h: no mailbox
    +7h   attempt 8 started
    +7h   attempt 8 released for 1h: no mailbox
    +8h   attempt 9 started
    +8h   attempt 9 released for 1h: no mailbox
    +9h   attempt 10 started
    +9h   attempt 10 released for 1h: no mailbox
    +10h  attempt 11 started
    +10h  attempt 11 released for 1h: no mailbox`)
}

func TestFinish_OfARunThatNobodyExecutes_SaysWhy(t *testing.T) {
	t.Parallel()
	other := runlane.NewTask[string]("other", nil)
	for name, c := range map[string]struct {
		call    runlane.Call
		options *runlane.TriggerOptions
		want    string
	}{
		"no handler": {call: other.With("x"), want: `run run_000001 of task "other" does not end: there is no handler for task "other": pass it in Options.Handlers`},
		"no worker": {
			call: echo.With("x"), options: &runlane.TriggerOptions{Queue: runlane.Queue{Name: "night"}},
			want: `run run_000001 of task "echo" does not end: no worker receives from queue "night": pass it in Options.Queues`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := spyOn(t, func(t testing.TB) {
				rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}})
				rt.FinishAll() // leaves alone what no worker executes
				rt.Finish(rt.MustTrigger(c.call, c.options).ID)
			})
			if !strings.Contains(got, c.want+"\nit is queued, ") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestOptionsQueues_AreWorkedOn(t *testing.T) {
	t.Parallel()
	night := runlane.Queue{Name: "night", Concurrency: 1}
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{echo.Handle(succeed)}, Queues: []runlane.Queue{night}})
	run := rt.Finish(rt.MustTrigger(echo.With("x"), &runlane.TriggerOptions{Queue: night}).ID)
	if run.Status != runlane.StatusSucceeded || run.Queue != "night" {
		t.Errorf("%s in queue %s", run.Status, run.Queue)
	}
}

func TestFinishAll_EndlessFollowUps_AreFound(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"at one instant": 0, "later and later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := spyOn(t, func(t testing.TB) {
				rt := runlanetest.New(t, &runlanetest.Options{MaxSteps: 50, Handlers: []runlane.Handler{
					echo.Handle(func(ctx context.Context, a *runlane.Attempt, text string) error {
						_, err := a.Trigger(ctx, echo.With(text), &runlane.TriggerOptions{Delay: delay})
						return err
					}),
				}})
				rt.MustTrigger(echo.With("x"), nil)
				rt.FinishAll()
			})
			if !strings.Contains(got, "50 attempts and jumps of the clock led to no end (Options.MaxSteps)") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAttemptLimit_OfAHandlerThatWaitsForAnotherRun(t *testing.T) {
	t.Parallel()
	got := spyOn(t, func(t testing.TB) {
		var rt *runlanetest.Runtime
		rt = runlanetest.New(t, &runlanetest.Options{AttemptLimit: 20 * time.Millisecond, Handlers: []runlane.Handler{
			echo.Handle(func(ctx context.Context, a *runlane.Attempt, text string) error {
				result, err := a.Trigger(ctx, echo.With(text), nil)
				if err == nil {
					_, err = rt.Wait(ctx, result.Run.ID)
				}
				return err
			}),
		}})
		rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID)
	})
	want := `runlanetest: run run_000001 of task "echo" does not end: its attempt took longer than 20ms (Options.AttemptLimit). Attempts are executed ` +
		`one after the other: a handler that waits for another run waits for ever, and has to release instead`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestAttemptLimit_InABubble_IsADayOfItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := spyOn(t, func(t testing.TB) {
			rt := runlanetest.New(t, &runlanetest.Options{Synctest: true, Handlers: []runlane.Handler{
				echo.Handle(func(ctx context.Context, _ *runlane.Attempt, _ string) error {
					<-ctx.Done()
					return ctx.Err()
				}),
			}})
			rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID)
		})
		if !strings.Contains(got, "its attempt took longer than 24h0m0s (Options.AttemptLimit)") || time.Since(begin) != 24*time.Hour {
			t.Errorf("after %s: %s", time.Since(begin), got)
		}
	})
}

func TestNew_WrongOptions_EndTheTest(t *testing.T) {
	t.Parallel()
	for want, options := range map[string]*runlanetest.Options{
		"Options.AttemptLimit is negative":               {AttemptLimit: -1},
		"Options.MaxSteps is negative":                   {MaxSteps: -1},
		"Options.Start is set with Options.Synctest":     {Start: time.Unix(1, 0), Synctest: true},
		`Options.Handlers: task "echo" has two handlers`: {Handlers: []runlane.Handler{echo.Handle(succeed), echo.Handle(succeed)}},
		"Options.Handlers[0] has no task":                {Handlers: []runlane.Handler{{}}},
	} {
		got := spyOn(t, func(t testing.TB) { runlanetest.New(t, options) })
		if !strings.HasPrefix(got, "runlanetest.New: ") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s", want, got)
		}
	}
}

func TestMustTrigger_WhatIsRefused_EndsTheTest(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]runlane.Call{
		`task "sum" was not triggered: validation_failed: payload of type chan int does not encode as JSON`: runlane.NewTask[chan int]("sum", nil).With(nil),
		`task "" was not triggered: validation_failed: empty call`:                                          {},
	} {
		got := spyOn(t, func(t testing.TB) { runlanetest.New(t, nil).MustTrigger(call, nil) })
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAdvance_Backwards_EndsTheTest(t *testing.T) {
	t.Parallel()
	got := spyOn(t, func(t testing.TB) { runlanetest.New(t, nil).Advance(-time.Second) })
	wantText(t, got, "runlanetest: Advance by -1s: the clock does not go back")
}

func TestAdvance_WithinAHandler_IsRefused(t *testing.T) {
	t.Parallel()
	got := spyOn(t, func(t testing.TB) {
		var rt *runlanetest.Runtime
		rt = runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
			echo.Handle(func(context.Context, *runlane.Attempt, string) error {
				rt.Advance(time.Hour)
				return nil
			}),
		}})
		run := rt.Finish(rt.MustTrigger(echo.With("x"), nil).ID)
		runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 failed: task_panicked")
	})
	wantText(t, got, "runlanetest: the clock is moved while another call moves it: a handler, or a second goroutine, may trigger and read only")
}

func TestHistory_OfARunThatDoesNotExist_EndsTheTest(t *testing.T) {
	t.Parallel()
	got := spyOn(t, func(t testing.TB) { runlanetest.New(t, nil).History("run_000007") })
	if !strings.HasPrefix(got, `runlanetest: run "run_000007" cannot be read: run_not_found: `) {
		t.Errorf("got %s", got)
	}
	got = spyOn(t, func(t testing.TB) { runlanetest.New(t, nil).Finish("run_000007") })
	if !strings.HasPrefix(got, `runlanetest: run run_000007 cannot be read: run_not_found: `) {
		t.Errorf("got %s", got)
	}
}

func TestLogs_GoToTheTest_AndToNobodyAfterItsEnd(t *testing.T) {
	t.Parallel()
	release, late := make(chan struct{}), make(chan struct{})
	failures, log := spyWithLog(t.Context(), func(t testing.TB) {
		run := runlanetest.Run(t, echo.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			a.Logger().Info("working")
			go func() { // left behind by the handler
				defer close(late)
				<-release
				a.Logger().Info("too late")
			}()
			return errMail
		}), echo.With("x"))
		if run.Status != runlane.StatusFailed {
			t.Error(run.Status)
		}
	})
	close(release)
	<-late
	if failures != "" {
		t.Error(failures)
	}
	wantText(t, log, `
time=2026-01-01T00:00:00.000Z level=INFO msg=working run_id=run_000001 task=echo queue=default attempt=1 worker_id=worker
time=2026-01-01T00:00:00.000Z level=WARN msg="run failed" run_id=run_000001 task=echo queue=default attempt=1 worker_id=worker code=task_failed error="the mail server is away"
`)
}
