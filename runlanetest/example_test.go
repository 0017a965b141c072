package runlanetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/runlanetest"
)

// example executes a test and prints what it fails with.
func example(test func(t testing.TB)) {
	if failures, _ := spyWithLog(context.Background(), test); failures != "" {
		fmt.Println(failures)
	}
}

// User is the payload of Welcome.
type User struct {
	ID string `json:"id"`
}

// Welcome is a task with retries, and Report one without.
var (
	Welcome = runlane.NewTask("emails.welcome", &runlane.TaskOptions[User]{
		IdempotencyKey: func(u User) string { return u.ID },
		Retry:          runlane.Retry{MaxAttempts: 3, Backoff: runlane.Exponential{Base: time.Minute}},
	})
	Report = runlane.NewTask[string]("reports.daily", nil)
)

// Mailer is what the handlers need.
type Mailer struct {
	Down int // how many attempts fail
}

// Welcome is the handler of the task.
func (m *Mailer) Welcome(ctx context.Context, a *runlane.Attempt, u User) error {
	if a.Number <= m.Down {
		return errors.New("the mail server is down")
	}
	if err := a.Progress(ctx, "sent"); err != nil {
		return err
	}
	if _, err := a.Trigger(ctx, Report.With("one more"), nil); err != nil {
		return err
	}
	return a.SetOutput(map[string]string{"to": u.ID})
}

// One run of a task, from its trigger to its end, with all its waits.
func ExampleRun() {
	TestWelcome := func(t testing.TB) { // in a file of tests: func TestWelcome(t *testing.T)
		mailer := &Mailer{Down: 2}
		run := runlanetest.Run(t, Welcome.Handle(mailer.Welcome), Welcome.With(User{ID: "u_1"}))
		fmt.Println(run.Status, "after", run.FinishedAt.Sub(run.CreatedAt), "with", string(run.Output))
		for _, child := range run.Children {
			fmt.Println("it triggered", child.TaskID, string(child.Payload))
		}
	}
	example(TestWelcome)
	// Output:
	// succeeded after 3m0s with {"to":"u_1"}
	// it triggered reports.daily "one more"
}

// A failure shows the difference. A line that ends in "..." is met by everything that begins like it.
func ExampleRequireTransitions() {
	TestWelcome := func(t testing.TB) {
		mailer := &Mailer{Down: 1}
		run := runlanetest.Run(t, Welcome.Handle(mailer.Welcome), Welcome.With(User{ID: "u_1"}))
		runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 failed: task_failed...", "attempt 2 started", "attempt 2 succeeded")
		runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 succeeded")
	}
	example(TestWelcome)
	// Output:
	// runlanetest: run run_000001 of task "emails.welcome" has other transitions (-want +got)
	//     triggered
	//     attempt 1 started
	//   - attempt 1 succeeded
	//   + attempt 1 failed: task_failed, retry in 1m
	//   + attempt 2 started
	//   + attempt 2 succeeded
}

// A golden history is a file that people read. RUNLANETEST_UPDATE=1 go test writes it.
func ExampleRequireGolden() {
	TestWelcome := func(t testing.TB) {
		mailer := &Mailer{Down: 1}
		run := runlanetest.Run(t, Welcome.Handle(mailer.Welcome), Welcome.With(User{ID: "u_1"}))
		runlanetest.RequireGolden(t, run, "testdata/example.golden")
		fmt.Print(run)
	}
	example(TestWelcome)
	// Output:
	// task     emails.welcome
	// queue    default
	// payload  {"id":"u_1"}
	// key      idempotency u_1
	//
	// +0s  triggered
	// +0s  attempt 1 started
	// +0s  attempt 1 failed: task_failed, retry in 1m (the mail server is down)
	// +1m  attempt 2 started
	// +1m  attempt 2 succeeded
	//
	// status   succeeded
	// counts   attempts 2, failures 1, retries 1, releases 0
	// output   {"to":"u_1"}
	// child    reports.daily "one more"
}

// Several tasks, their schedules and a clock that the test moves.
func ExampleNew() {
	TestMorning := func(t testing.TB) {
		var rt *runlanetest.Runtime
		rt = runlanetest.New(t, &runlanetest.Options{
			Handlers: []runlane.Handler{
				Welcome.Handle(new(Mailer).Welcome),
				Report.Handle(func(_ context.Context, _ *runlane.Attempt, what string) error {
					fmt.Println(rt.Now().Format("Mon 15:04"), "report:", what)
					return nil
				}),
			},
			Schedules: []runlane.Schedule{{ID: "morning", When: runlane.Cron("0 7 * * *"), Call: Report.With("the night")}},
			Start:     time.Date(2026, time.May, 4, 6, 30, 0, 0, time.UTC), // a Monday
		})
		rt.MustTrigger(Welcome.With(User{ID: "u_1"}), nil)
		rt.Settle() // what is due now
		rt.Advance(26 * time.Hour)
	}
	example(TestMorning)
	// Output:
	// Mon 06:30 report: one more
	// Mon 07:00 report: the night
	// Tue 07:00 report: the night
}

// Finish moves the clock until one run has ended, FinishAll until all have.
func ExampleRuntime_Finish() {
	TestWelcome := func(t testing.TB) {
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{Welcome.Handle(new(Mailer).Welcome)}})
		soon := rt.MustTrigger(Welcome.With(User{ID: "u_1"}), &runlane.TriggerOptions{Delay: time.Hour})
		late := rt.MustTrigger(Welcome.With(User{ID: "u_2"}), &runlane.TriggerOptions{Delay: 24 * time.Hour})
		fmt.Println(rt.Finish(soon.ID).Status, rt.History(late.ID).Status)
		rt.FinishAll()
		for _, run := range rt.Histories(late.TaskID) {
			fmt.Println(run.ID, run.Transitions())
		}
	}
	example(TestWelcome)
	// Output:
	// succeeded scheduled
	// run_000001 [triggered to begin in 1h attempt 1 started attempt 1 succeeded]
	// run_000002 [triggered to begin in 1d attempt 1 started attempt 1 succeeded]
}

// A run that does not end says what it waits for.
func ExampleRuntime_Finish_endless() {
	TestWaiting := func(t testing.TB) {
		waiting := Report.Handle(func(context.Context, *runlane.Attempt, string) error {
			return runlane.Release(time.Hour, "no figures yet")
		})
		rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{waiting}, MaxSteps: 2})
		rt.Finish(rt.MustTrigger(Report.With("x"), nil).ID)
	}
	example(TestWaiting)
	// Output:
	// runlanetest: run run_000001 of task "reports.daily" does not end: 2 attempts and jumps of the clock led to no end (Options.MaxSteps)
	// it is released, 1h after its trigger, and waits for: time, until +2h. Its handler released it in attempt 2 and it resumes then. Cancel ends it before.
	// its transitions:
	//     +0s  triggered
	//     +0s  attempt 1 started
	//     +0s  attempt 1 released for 1h: no figures yet
	//     +1h  attempt 2 started
	//     +1h  attempt 2 released for 1h: no figures yet
}

// A handler alone: what it returns, and what it did through its attempt.
func ExampleNewAttempt() {
	TestWelcomeHandler := func(t testing.TB) {
		a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{Number: 2})
		mailer := &Mailer{Down: 1}
		if err := mailer.Welcome(t.Context(), a.Attempt, User{ID: "u_1"}); err != nil {
			t.Errorf("the second attempt: %v", err)
		}
		fmt.Println(string(a.Output()), a.Notes(), len(a.Logs()))
		runlanetest.RequirePayloads(t, a.Recorder, Report, "one more")
	}
	example(TestWelcomeHandler)
	// Output: {"to":"u_1"} [sent] 0
}

// Execute encodes and decodes the payload, as a runtime does.
func ExampleAttempt_Execute() {
	TestWelcomeHandler := func(t testing.TB) {
		a := runlanetest.NewAttempt(t, nil)
		err := a.Execute(t.Context(), Welcome.Handle((&Mailer{Down: 1}).Welcome), Welcome.With(User{ID: "u_1"}))
		fmt.Println(err, string(a.Run.Payload), a.Run.IdempotencyKey)
	}
	example(TestWelcomeHandler)
	// Output: the mail server is down {"id":"u_1"} u_1
}

func ExampleAttempt_Receipt() {
	example(func(t testing.TB) {
		a := runlanetest.NewAttempt(t, nil)
		a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptHTTP, Status: 202})
		fmt.Println(a.Receipt().Status)
	})
	// Output: 202
}

// SignUp is code that triggers: it depends on runlane.Triggerer, which a runtime is, and a Recorder.
func SignUp(ctx context.Context, lane runlane.Triggerer, ids ...string) error {
	for _, id := range ids {
		if _, err := lane.Trigger(ctx, Welcome.With(User{ID: id}), nil); err != nil {
			return err
		}
	}
	return nil
}

// Code that triggers needs no runtime in its test.
func ExampleRecorder() {
	TestSignUp := func(t testing.TB) {
		var recorder runlanetest.Recorder
		if err := SignUp(t.Context(), &recorder, "u_1", "u_2", "u_1"); err != nil {
			t.Errorf("SignUp: %v", err)
		}
		runlanetest.RequirePayloads(t, &recorder, Welcome, User{ID: "u_1"}, User{ID: "u_2"})
		users := runlanetest.Payloads(t, &recorder, Welcome)
		fmt.Println(len(users), slices.Contains(users, User{ID: "u_2"}))
		for _, call := range recorder.Calls() {
			fmt.Println(call.TaskID, call.IdempotencyKey, call.Result.Outcome, call.Result.Run.ID)
		}
	}
	example(TestSignUp)
	// Output:
	// 2 true
	// emails.welcome u_1 created run_000001
	// emails.welcome u_2 created run_000002
	// emails.welcome u_1 returned_existing run_000001
}

// A recorder can fail, call by call.
func ExampleRecorder_Trigger_failing() {
	TestSignUpWithoutTable := func(t testing.TB) {
		recorder := &runlanetest.Recorder{Fail: func(call *runlanetest.Recorded) error {
			if call.IdempotencyKey == "u_2" {
				return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the table is away"}
			}
			return nil
		}}
		_, err := recorder.Trigger(t.Context(), Welcome.With(User{ID: "u_1"}), nil)
		fmt.Println(err)
		fmt.Println(SignUp(t.Context(), recorder, "u_2", "u_3"))
		runlanetest.RequirePayloads(t, recorder, Welcome, User{ID: "u_1"})
	}
	example(TestSignUpWithoutTable)
	// Output:
	// <nil>
	// storage_unavailable: the table is away
}

// The history of a run on any lane, for example on local AWS.
func ExampleHistoryOf() {
	TestOnALane := func(t testing.TB) {
		rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Handlers: []runlane.Handler{
			Report.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
		}})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		defer func() { _ = rt.Close(context.WithoutCancel(t.Context())) }()
		result, err := rt.Trigger(t.Context(), Report.With("x"), nil)
		if err != nil {
			t.Fatalf("Trigger: %v", err)
		}
		if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
			t.Fatalf("Work: %v", err)
		}
		fmt.Println(runlanetest.HistoryOf(t, rt, result.Run.ID).Transitions())
	}
	example(TestOnALane)
	// Output: [triggered attempt 1 started attempt 1 succeeded]
}
