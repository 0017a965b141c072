package runlane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

// A receipt is kept whether the attempt succeeds or not. Operators read it with "runlane runs receipts" or Runs.Receipts.
func ExampleAttempt_SetReceipt() {
	run := executeExample(func(_ context.Context, a *runlane.Attempt, _ []string) error {
		began := time.Now()
		response := &http.Response{StatusCode: http.StatusGone} // of a request
		a.SetReceipt(runlane.Receipt{
			Target: runlane.ReceiptHTTP, StartedAt: began, EndedAt: time.Now(),
			Request: "POST https://example.com", Status: response.StatusCode,
		})
		return nil
	})
	fmt.Println(run.Status)
	// Output: succeeded
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

// Who waits for the end of a run goes by what its status counts as.
func ExampleStatus_End() {
	for _, s := range append(runlane.TerminalStatuses(), runlane.StatusReleased) {
		fmt.Printf("%s %q\n", s, s.End())
	}
	// Output:
	// succeeded "succeeded"
	// failed "failed"
	// cancelled "cancelled"
	// released ""
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

// A run that needs an operator waits for one, without a time limit: runlane runs list --waiting blocked shows it with the reason.
func ExampleBlock() {
	handler := func(_ context.Context, a *runlane.Attempt, quota int) error {
		if quota == 0 {
			return runlane.Block("raise the quota, then resume")
		}
		return nil
	}
	err := handler(context.Background(), &runlane.Attempt{}, 0)
	fmt.Println(runlane.Suspended(err), err)
	// Output: true suspended: raise the quota, then resume
}

type decision struct {
	By string `json:"by"`
}

// Declared beside the task: senders and handlers share the name and the type of the body.
var (
	approved  = runlane.NewSignal[decision]("approved")
	withdrawn = runlane.NewSignal[string]("withdrawn")
)

// A handler waits for a signal by returning its error: it is called again from its beginning when the signal is there. Each
// round of a loop has its own name.
func ExampleSignal() {
	approved := runlane.NewSignal[decision]("approved")
	handler := func(ctx context.Context, a *runlane.Attempt, round int) error {
		answer, err := approved.Named(fmt.Sprintf("approved/%d", round)).Wait(ctx, a, &runlane.WaitOptions{
			Prompt:  "Approve?",
			Timeout: 72 * time.Hour,
		})
		switch {
		case errors.Is(err, runlane.ErrWaitTimedOut):
			return runlane.Permanent(errors.New("not approved in time"))
		case err != nil:
			return err // also a suspension
		}
		fmt.Println("approved by", answer.By)
		return nil
	}
	// What a runtime does for a signal that is there:
	a := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{
		Waits: waits(func(_ context.Context, request runlane.WaitRequest) (runlane.WaitAnswer, error) {
			fmt.Println(request.Names, request.Prompt)
			return runlane.WaitAnswer{Signals: []runlane.ReceivedSignal{
				{Name: request.Names[0], Body: []byte(`{"by":"ada"}`)},
			}}, nil
		}),
	})
	fmt.Println(handler(context.Background(), a, 2))
	// Output:
	// [approved/2] Approve?
	// approved by ada
	// <nil>
}

// The pointers tell which of several signals was received.
func ExampleWaitAny() {
	handler := func(ctx context.Context, a *runlane.Attempt, wait func(
		context.Context, *runlane.Attempt, *runlane.WaitOptions, ...runlane.Case,
	) error) error {
		var yes *decision
		var reason *string
		if err := wait(ctx, a, &runlane.WaitOptions{Name: "decision"}, approved.Into(&yes), withdrawn.Into(&reason)); err != nil {
			return err
		}
		fmt.Println(yes != nil, reason != nil)
		return nil
	}
	suspended := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{
		Waits: waits(func(context.Context, runlane.WaitRequest) (runlane.WaitAnswer, error) {
			return runlane.WaitAnswer{}, &runlane.ReleaseError{Reason: "waits", Waiting: &runlane.Waiting{}}
		}),
	})
	fmt.Println(runlane.Suspended(handler(context.Background(), suspended, runlane.WaitAny)))
	fmt.Println(runlane.Suspended(handler(context.Background(), suspended, runlane.WaitAll)))
	// Output:
	// true
	// true
}

// A token is for a link in a mail. Signals to other runs have an id, since attempts are repeated.
func ExampleSignal_Token() {
	handler := func(ctx context.Context, a *runlane.Attempt, other runlane.RunID) error {
		token, err := approved.Token(ctx, a, &runlane.TokenOptions{TTL: 72 * time.Hour})
		if err != nil {
			return err
		}
		if err := a.Signal(ctx, other, approved.With(decision{By: "ada"}), nil); err != nil {
			return err
		}
		return a.Signal(ctx, other, runlane.NewRawSignal("asked", []byte(`"`+token+`"`)), &runlane.SignalOptions{ID: string(a.Run.ID)})
	}
	err := handler(context.Background(), &runlane.Attempt{}, "run_2")
	fmt.Println(runlane.CodeOf(err), approved.Name())
	// Output: configuration_invalid approved
}

// A node of a flow is an address that lasts: the signal reaches its latest run, also after a retry.
func ExampleAttempt_SignalNode() {
	handler := func(ctx context.Context, a *runlane.Attempt, order string) error {
		node := runlane.Node{Flow: runlane.FlowID("order-" + order), Name: "place"}
		return a.SignalNode(ctx, node, approved.With(decision{By: "ada"}), &runlane.SignalOptions{ID: string(a.Run.ID)})
	}
	err := handler(context.Background(), &runlane.Attempt{}, "17")
	fmt.Println(runlane.CodeOf(err))
	// Output: configuration_invalid
}

// waits answers waits as a runtime does.
type waits func(context.Context, runlane.WaitRequest) (runlane.WaitAnswer, error)

func (w waits) Wait(ctx context.Context, request runlane.WaitRequest) (runlane.WaitAnswer, error) {
	return w(ctx, request)
}

func (waits) Token(name string, _ time.Duration) (string, error) { return "token of " + name, nil }

// A payment is made once, although its answer got lost and an operator retried the run.
func ExampleAttempt_EffectID() {
	charged := map[string]bool{} // the bank's: it knows the keys of payments
	charge := runlane.NewTask[string]("orders.charge", nil).Handle(
		func(_ context.Context, a *runlane.Attempt, order string) error {
			if key := a.EffectID("charge"); !charged[key] {
				charged[key] = true
				fmt.Println("charge", order, "under", key)
			}
			return nil
		})
	first := runlane.Run{ID: "run_1", Payload: []byte(`"order 7"`)}
	retry := runlane.Run{ID: "run_2", Payload: first.Payload, Source: runlane.Source{OriginID: "run_1"}}
	for _, run := range []runlane.Run{first, first, retry} {
		if err := charge.Execute(context.Background(), runlane.NewAttempt(run, 1, runlane.AttemptHost{}), run.Payload); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(retry.ID, "has the effects of", retry.EffectID())
	// Output:
	// charge order 7 under run_1/charge
	// run_2 has the effects of run_1
}
