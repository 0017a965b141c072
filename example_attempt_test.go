package runlane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// importList reads lists of addresses and welcomes each.
var importList = runlane.NewTask[[]string]("lists.import", nil)

// executeExample executes one run of importList with the handler and returns it.
func executeExample(handler func(context.Context, *runlane.Attempt, []string) error, lists ...string) *runlane.Run {
	ctx := context.Background()
	plain := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "worker_id" {
			return slog.Attr{} // another one every time
		}
		return a
	}}))
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{importList.Handle(handler)}, Logger: plain})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	result, err := rt.RunNow(ctx, importList.With(lists), &runlane.TriggerOptions{RunID: "run_1"})
	if err != nil {
		panic(err)
	}
	return result.Run
}

func ExampleAttempt_Logger() {
	executeExample(func(_ context.Context, a *runlane.Attempt, lists []string) error {
		a.Logger().Info("importing", "lists", len(lists))
		return nil
	}, "spring")
	// Output: level=INFO msg=importing run_id=run_1 task=lists.import queue=default attempt=1 lists=1
}

func ExampleAttempt_SetOutput() {
	run := executeExample(func(_ context.Context, a *runlane.Attempt, lists []string) error {
		return a.SetOutput(map[string]int{"imported": len(lists)})
	}, "spring", "summer")
	var output struct{ Imported int }
	_, err := run.DecodeOutput(&output)
	fmt.Println(run.Status, output.Imported, err)
	// Output: succeeded 2 <nil>
}

// Notes are for people who look at a run that takes long.
func ExampleAttempt_Progress() {
	run := executeExample(func(ctx context.Context, a *runlane.Attempt, lists []string) error {
		for i, list := range lists {
			if err := a.Progress(ctx, fmt.Sprintf("%d of %d: %s", i+1, len(lists), list)); err != nil {
				a.Logger().Warn("no note", "error", err) // never a reason to fail
			}
		}
		return nil
	}, "spring", "summer")
	fmt.Println(run.Status)
	// Output: succeeded
}

// A handler may be repeated after it triggered: a key makes the follow-up one run.
func ExampleAttempt_Trigger() {
	run := executeExample(func(ctx context.Context, a *runlane.Attempt, lists []string) error {
		for _, list := range lists {
			result, err := a.Trigger(ctx, SendWelcome.With(Welcome{UserID: list}), &runlane.TriggerOptions{
				IdempotencyKey: string(a.Run.ID) + "/" + list,
			})
			if err != nil {
				return err
			}
			fmt.Println(result.Outcome, "after", result.Run.Source.RunID)
		}
		return nil
	}, "spring")
	fmt.Println(run.Status)
	// Output:
	// created after run_1
	// succeeded
}

// AttemptFrom is for code that is called by handlers without knowing them, like a client that sends the run's id along.
func ExampleAttemptFrom() {
	request := func(ctx context.Context) string {
		if a := runlane.AttemptFrom(ctx); a != nil {
			return "Idempotency-Key: " + string(a.Run.ID)
		}
		return "no run"
	}
	executeExample(func(ctx context.Context, _ *runlane.Attempt, _ []string) error {
		fmt.Println(request(ctx))
		return nil
	})
	fmt.Println(request(context.Background()))
	// Output:
	// Idempotency-Key: run_1
	// no run
}

// TriggerOptions are for one run; what holds for every run of a task is in its TaskOptions.
func ExampleTriggerOptions() {
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), nil) // a program that only triggers needs no handler
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	result, err := rt.Trigger(ctx, SendWelcome.With(Welcome{UserID: "u_1"}), &runlane.TriggerOptions{
		Delay:        10 * time.Minute,
		SingletonKey: "u_1", // one active run
		Meta:         map[string]string{"request": "r_17"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Outcome, result.Run.Status)

	_, err = rt.Trigger(ctx, SendWelcome.With(Welcome{UserID: "u_2"}), &runlane.TriggerOptions{SingletonKey: "u_1"})
	fmt.Println(errors.Is(err, runlane.ConflictSingletonKey))
	// Output:
	// created scheduled
	// true
}

// A task says which keys it computes, for command lines that have only its name and a payload.
func ExampleTaskKeys_Any() {
	keys := SendWelcome.Definition().Keys
	fmt.Println(keys.Any(), keys.Idempotency, keys.Singleton)
	// Output: true true false
}

func ExampleStatus_Terminal() {
	for _, s := range []runlane.Status{runlane.StatusRetrying, runlane.StatusFailed, "of_a_newer_version"} {
		fmt.Println(s, s.Terminal(), s.Active(), s.Known())
	}
	// Output:
	// retrying false true true
	// failed true false true
	// of_a_newer_version false true false
}

// What waits has a time in Run.RunAt; what is owned has a worker, in Run.Lease.
func ExampleStatus_Waiting() {
	for _, s := range []runlane.Status{runlane.StatusQueued, runlane.StatusRetrying, runlane.StatusCancellationRequested} {
		fmt.Println(s, s.Waiting(), s.Owned())
	}
	// Output:
	// queued false false
	// retrying true false
	// cancellation_requested false true
}

func ExampleFormatDuration() {
	fmt.Println(runlane.FormatDuration(36*time.Hour), runlane.FormatDuration(30*24*time.Hour), runlane.FormatDuration(90*time.Second))
	// Output: 1d12h 30d 1m30s
}

func ExampleOnce() {
	launch := runlane.Once(time.Date(2026, time.June, 1, 9, 0, 0, 0, time.UTC))
	next, ok := launch.Next(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(next, ok)
	_, ok = launch.Next(next)
	fmt.Println(ok)
	// Output:
	// 2026-06-01 09:00:00 +0000 UTC true
	// false
}

// A middleware wraps every attempt of a program: core.Options.Middleware.
func ExampleMiddleware() {
	ctx := context.Background()
	measure := runlane.Middleware(func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
		err := next(ctx)
		fmt.Println(a.Run.TaskID, "attempt", a.Number, "ended with", err)
		return err // what it returns is what counts
	})
	mailer := &Mailer{ready: true}
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers:   []runlane.Handler{SendWelcome.Handle(mailer.SendWelcome)},
		Middleware: []runlane.Middleware{measure},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	if _, err := rt.RunNow(ctx, SendWelcome.With(Welcome{UserID: "u_1"}), nil); err != nil {
		panic(err)
	}
	// Output:
	// welcome, u_1
	// emails.welcome attempt 1 ended with <nil>
}

func ExampleFixed() {
	every := runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Minute), NoJitter: true}
	fmt.Println(every.Delay(1), every.Delay(2), every.Validate())
	// Output: 1m0s 1m0s <nil>
}

// A function of your own is a backoff too. It has to be pure: the runtime may ask it at any time.
func ExampleBackoffFunc() {
	patient := runlane.Retry{MaxAttempts: 10, Backoff: runlane.BackoffFunc(func(n int) time.Duration {
		if n < 3 {
			return time.Second
		}
		return time.Hour
	})}
	fmt.Println(patient.Delay(1), patient.Delay(3))
	// Output: 1s 1h0m0s
}

// A schedule goes into core.Options.Schedules of the programs that tick.
func ExampleSchedule() {
	nightly := runlane.Schedule{
		ID:      "reports.nightly",
		When:    runlane.Cron("30 2 * * *").In("Europe/Berlin"),
		Call:    runlane.NewTask[string]("reports.make", nil).With("yesterday"),
		Misfire: runlane.Misfire{Policy: runlane.MisfireSkip, Tolerance: time.Hour}, // later than that it is not worth it
		Overlap: runlane.OverlapForbid,                                              // not beside one that still runs
	}
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{Schedules: []runlane.Schedule{nightly}})
	if err != nil {
		panic(err) // what is wrong with a schedule is found here
	}
	defer func() { _ = rt.Close(context.Background()) }()
	times, err := rt.Schedules().Preview("reports.nightly", 3)
	fmt.Println(len(times), err)
	// Output: 3 <nil>
}
