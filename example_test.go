package runlane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// Welcome is a payload: plain data, encoded as JSON.
type Welcome struct {
	UserID string `json:"userId"`
}

// SendWelcome is shared by every program that triggers it: its package needs nothing but runlane.
var SendWelcome = runlane.NewTask("emails.welcome", &runlane.TaskOptions[Welcome]{
	IdempotencyKey: func(p Welcome) string { return p.UserID },
	Queue:          runlane.Queue{Name: "emails"},
	Retry:          runlane.Retry{MaxAttempts: 5, Backoff: runlane.Exponential{Max: time.Minute}},
})

// Mailer holds what handlers need. Only programs that execute link it.
type Mailer struct{ ready bool }

// SendWelcome is the handler: nil succeeds, an error is retried.
func (m *Mailer) SendWelcome(_ context.Context, _ *runlane.Attempt, p Welcome) error {
	switch {
	case p.UserID == "":
		return runlane.Permanent(errors.New("no address to welcome"))
	case !m.ready:
		return runlane.Release(10*time.Minute, "mailbox not provisioned")
	default:
		fmt.Println("welcome,", p.UserID)
		return nil
	}
}

func ExampleNewTask() {
	task := runlane.NewTask("reports.nightly", &runlane.TaskOptions[struct{}]{
		Queue:   runlane.Queue{Name: "reports", Concurrency: 2},
		Timeout: 10 * time.Minute,
	})
	fmt.Println(task.Definition().ID, task.Definition().Queue.Name, task.Definition().Err())

	// A fault surfaces when a runtime opens or a run is triggered, never in NewTask.
	fmt.Println(runlane.NewTask[int]("a:b", nil).Definition().Err())
	// Output:
	// reports.nightly reports <nil>
	// configuration_invalid: task "a:b": task id contains ':' (use 1 to 200 bytes of printable text without ':') (correct the call of runlane.NewTask)
}

// Finished runs of the task are kept for a week, failed ones for ever, and cancelled ones as long as the environment's.
func ExampleKeepAll() {
	task := runlane.NewTask("reports.nightly", &runlane.TaskOptions[struct{}]{
		Keep: runlane.Keep{Succeeded: 7 * 24 * time.Hour, Failed: runlane.KeepForever},
	})
	keep := task.Definition().Keep.Or(runlane.KeepAll(runlane.DefaultKeep))
	fmt.Println(keep.Of(runlane.StatusSucceeded), keep.Of(runlane.StatusCancelled), keep.Failed == runlane.KeepForever)
	// Output: 168h0m0s 720h0m0s true
}

func ExampleTask_Handle() {
	mailer := &Mailer{ready: true}
	handler := SendWelcome.Handle(mailer.SendWelcome) // goes into core.Options.Handlers

	// A handler's test needs no runtime.
	err := handler.Execute(context.Background(), &runlane.Attempt{}, []byte(`{"userId":"u_1"}`))
	fmt.Println(handler.Task.ID, err)
	// Output:
	// welcome, u_1
	// emails.welcome <nil>
}

func ExampleTask_ID() {
	fmt.Println(SendWelcome.ID()) // by which lists filter: core.RunFilter{TaskID: SendWelcome.ID()}
	// Output:
	// emails.welcome
}

func ExampleTask_With() {
	call := SendWelcome.With(Welcome{UserID: "u_1"}) // what Trigger takes

	prepared, err := call.Prepare()
	fmt.Printf("%s %q %v\n", prepared.Payload, prepared.IdempotencyKey, err)
	// Output:
	// {"userId":"u_1"} "u_1" <nil>
}

func ExampleTask_Decode() {
	p, err := SendWelcome.Decode([]byte(`{"userId":"u_1","addedLater":true}`))
	fmt.Println(p.UserID, err)
	// Output:
	// u_1 <nil>
}

func ExampleNewRawCall() {
	call := runlane.NewRawCall(SendWelcome.Definition(), json.RawMessage(`{"userId": "u_1"}`))

	prepared, err := call.Prepare()
	fmt.Printf("%s %v\n", prepared.Payload, err) // the bytes as given
	// Output:
	// {"userId": "u_1"} <nil>
}

func ExampleRetry() {
	retry := runlane.Retry{MaxAttempts: 4, Backoff: runlane.Exponential{Base: 10 * time.Second, Max: 30 * time.Second}}
	for failure := 1; failure < retry.Attempts(); failure++ {
		fmt.Println(retry.Delay(failure))
	}
	// Output:
	// 10s
	// 20s
	// 30s
}

func ExampleRelease() {
	mailer := &Mailer{ready: false}
	err := mailer.SendWelcome(context.Background(), &runlane.Attempt{}, Welcome{UserID: "u_1"})
	if release, ok := errors.AsType[*runlane.ReleaseError](err); ok {
		fmt.Println("again in", release.Delay, "because:", release.Reason)
	}
	// Output:
	// again in 10m0s because: mailbox not provisioned
}

func ExamplePermanent() {
	mailer := &Mailer{}
	err := mailer.SendWelcome(context.Background(), &runlane.Attempt{}, Welcome{})
	_, permanent := errors.AsType[*runlane.PermanentError](err)
	fmt.Println(err, permanent)
	// Output:
	// no address to welcome true
}

func ExampleRetryAfter() {
	// A server said when to come again: that replaces the backoff.
	err := runlane.RetryAfter(30*time.Second, errors.New("429 Too Many Requests"))
	if later, ok := errors.AsType[*runlane.RetryAfterError](err); ok {
		fmt.Println(later.Delay, err)
	}
	// Output:
	// 30s 429 Too Many Requests
}

func ExampleParseDuration() {
	for _, text := range []string{"36h", "30d", "1w2d12h", "soon"} {
		d, err := runlane.ParseDuration(text)
		fmt.Println(d, err)
	}
	// Output:
	// 36h0m0s <nil>
	// 720h0m0s <nil>
	// 228h0m0s <nil>
	// 0s validation_failed: "soon" is not a duration (write it like "90s", "36h" or "1w2d")
}

func ExampleCodeOf() {
	err := fmt.Errorf("show run: %w", &runlane.Error{Code: runlane.ErrRunNotFound, Message: "no run run_1"})
	switch runlane.CodeOf(err) {
	case runlane.ErrRunNotFound:
		fmt.Println("nothing to show")
	default:
		fmt.Println("failed:", err)
	}
	// Output:
	// nothing to show
}

func ExampleRun_DecodeOutput() {
	run := &runlane.Run{Output: json.RawMessage(`{"sent":3}`)}
	var result struct{ Sent int }
	ok, err := run.DecodeOutput(&result)
	fmt.Println(result.Sent, ok, err)
	// Output:
	// 3 true <nil>
}
