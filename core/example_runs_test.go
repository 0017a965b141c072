package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

func ExampleRuns_Get() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")

	run, err := rt.Runs().Get(context.Background(), "run_1")
	fmt.Println(run.TaskID, run.Status, err)
	_, err = rt.Runs().Get(context.Background(), "run_2")
	fmt.Println(runlane.CodeOf(err))
	// Output:
	// mail.welcome queued <nil>
	// run_not_found
}

// A page is for people who look, All is for programs.
func ExampleRuns_List() {
	rt := openExample()
	defer rt.close()
	for _, id := range []runlane.RunID{"run_1", "run_2", "run_3"} {
		rt.start(id, string(id)+"@example.org")
		rt.now = rt.now.Add(time.Second)
	}
	page, err := rt.Runs().List(context.Background(), &core.ListOptions{
		RunFilter: core.RunFilter{TaskID: "mail.welcome", Statuses: []runlane.Status{runlane.StatusQueued}},
		Limit:     2,
	})
	for _, run := range page.Items {
		fmt.Println(run.ID, run.Status)
	}
	fmt.Println("more:", page.Next != "", err)
	// Output:
	// run_1 queued
	// run_2 queued
	// more: true <nil>
}

func ExampleRuns_All() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.start("run_2", "missing")
	rt.drain()
	for run, err := range rt.Runs().All(context.Background(), nil) {
		if err != nil {
			fmt.Println(err) // the last thing that comes
			return
		}
		fmt.Println(run.ID, run.Status, run.FailureCode)
	}
	// Unordered output:
	// run_1 succeeded
	// run_2 failed task_failed
}

// FindCurrent and FindActive read the key's owner: they cannot lag, as lists do.
func ExampleRuns_FindCurrent() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	do(rt.Trigger(ctx, welcome.With("ada@example.org"), &runlane.TriggerOptions{RunID: "run_1", SingletonKey: "ada"}))
	rt.drain()

	run, err := rt.Runs().FindCurrent(ctx, "mail.welcome", "ada@example.org") // the idempotency key: kept for 30 days
	fmt.Println(run.ID, err)
	_, err = rt.Runs().FindActive(ctx, "mail.welcome", "ada") // the singleton key: held while the run is active
	fmt.Println(runlane.CodeOf(err))
	// Output:
	// run_1 <nil>
	// run_not_found
}

// A program that mirrors a history keeps the cursor of what it has dealt with.
func ExampleRuns_Events() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")

	var cursor runlane.Cursor
	for event, err := range rt.Runs().Events(context.Background(), "run_1", nil) {
		ok(err)
		fmt.Println(event.Sequence, event.Type(), event.Actor.Type)
		cursor = core.EventCursor(&event)
	}
	rt.drain()
	fmt.Println("later, perhaps elsewhere")
	for event, err := range rt.Runs().Events(context.Background(), "run_1", &core.EventOptions{After: cursor, Follow: true}) {
		ok(err)
		fmt.Println(event.Sequence, event.Type(), event.Actor.Type)
	}
	// Output:
	// 1 run.created system
	// 2 run.delivery_requested system
	// later, perhaps elsewhere
	// 3 run.lease_claimed worker
	// 4 run.started worker
	// 5 run.succeeded worker
}

func ExampleRuns_Attempts() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "missing")
	rt.drain()
	attempts, err := rt.Runs().Attempts(context.Background(), "run_1")
	for _, a := range attempts {
		fmt.Println(a.Number, a.Status, a.Failure.Code)
	}
	fmt.Println(err)
	// Output:
	// 1 failed task_failed
	// <nil>
}

// Explain has exactly one answer for every run.
func ExampleRuns_Explain() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	do(rt.Trigger(ctx, welcome.With("ada@example.org"), &runlane.TriggerOptions{RunID: "run_1", Delay: time.Hour}))
	e, err := rt.Runs().Explain(ctx, "run_1")
	fmt.Println(e.Wait, "until", e.Until.Format(time.TimeOnly), err)

	rt.start("run_2", "bob@example.org")
	e, err = rt.Runs().Explain(ctx, "run_2")
	fmt.Println(e.Wait, err)
	// Output:
	// time until 13:00:00 <nil>
	// wakeup <nil>
}

// A waiting run ends at once; a running one is asked to stop.
func ExampleRuns_Cancel() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	run, err := rt.Runs().Cancel(context.Background(), "run_1", &core.ChangeOptions{Reason: "wrong address"})
	fmt.Println(run.Status, err)
	// Output: cancelled <nil>
}

// The bulk calls count first, if asked to, and take at most Cap runs a call.
func ExampleRuns_CancelAll() {
	rt := openExample()
	defer rt.close()
	for _, id := range []runlane.RunID{"run_1", "run_2", "run_3"} {
		rt.start(id, string(id)+"@example.org")
	}
	ctx := context.Background()
	options := &core.BulkOptions{RunFilter: core.RunFilter{TaskID: "mail.welcome"}, DryRun: true}
	result := do(rt.Runs().CancelAll(ctx, options))
	fmt.Println(result.Matched, "would be cancelled")

	options.DryRun, options.Cap = false, 2
	for {
		result = do(rt.Runs().CancelAll(ctx, options))
		fmt.Println(result.Changed, "cancelled")
		if result.Next == "" {
			return
		}
		options.After = result.Next
	}
	// Output:
	// 3 would be cancelled
	// 2 cancelled
	// 1 cancelled
}

// A wait is over before its time. The run is queued, with a wakeup on its way.
func ExampleRuns_Resume() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	call := welcome.With("ada@example.org")
	do(rt.Trigger(ctx, call, &runlane.TriggerOptions{RunID: "run_1", Delay: time.Hour}))
	run, err := rt.Runs().Resume(ctx, "run_1", &core.ChangeOptions{Reason: "she asked for it"})
	fmt.Println(run.Status, err)
	// Output: queued <nil>
}

// Many runs that failed for the same reason need not wait for their backoff once that is gone.
func ExampleRuns_ResumeAll() {
	rt := openExample()
	defer rt.close()
	result := do(rt.Runs().ResumeAll(context.Background(), &core.BulkOptions{
		RunFilter: core.RunFilter{TaskID: "mail.welcome", Statuses: []runlane.Status{runlane.StatusRetrying}},
		DryRun:    true,
	}))
	fmt.Println(result.Matched, "would be resumed")
	// Output: 0 would be resumed
}

// A retry is a new run with the whole budget. Asking twice makes one.
func ExampleRuns_Retry() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "missing")
	rt.drain()
	ctx := context.Background()
	first := do(rt.Runs().Retry(ctx, "run_1", &core.ChangeOptions{Reason: "mailbox exists now"}))
	again := do(rt.Runs().Retry(ctx, "run_1", nil))
	fmt.Println(first.Status, first.Source.Type, first.Source.RunID, first.ID == again.ID)
	failed := do(rt.Runs().Get(ctx, "run_1"))
	retries := do(rt.Runs().Retries(ctx, []runlane.RunSummary{failed.Summary()}))
	fmt.Println(retries["run_1"].ID == first.ID)
	// Output:
	// queued manual_retry run_1 true
	// true
}

func ExampleRuns_RetryAll() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "missing")
	rt.start("run_2", "ada@example.org")
	rt.drain()
	result, err := rt.Runs().RetryAll(context.Background(), &core.BulkOptions{
		ChangeOptions: core.ChangeOptions{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}, Reason: "fixed"},
		AllRuns:       true, // all that failed
	})
	fmt.Println(result.Changed, "retried", err)
	// Output: 1 retried <nil>
}

func ExampleRuns_Rerun() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.drain()
	run, err := rt.Runs().Rerun(context.Background(), "run_1", nil)
	fmt.Println(run.Status, string(run.Payload), err)
	// Output: queued "ada@example.org" <nil>
}

func ExampleRuns_Repeat() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.drain()
	for range 2 { // the second call makes nothing
		result, err := rt.Runs().Repeat(context.Background(), "run_1", runlane.SourceRerun, nil)
		fmt.Println(result.Outcome, result.Run.Status, err)
	}
	// Output:
	// created queued <nil>
	// returned_existing queued <nil>
}

func ExampleRuns_RerunAll() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.start("run_2", "bob@example.org")
	rt.drain()
	options := &core.BulkOptions{RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusSucceeded}, TaskID: "mail.welcome"}}
	for range 2 { // the second call finds that both were repeated
		result, err := rt.Runs().RerunAll(context.Background(), options)
		fmt.Println(result.Changed, result.Skipped, err)
	}
	// Output:
	// 2 0 <nil>
	// 0 2 <nil>
}

// A note is for people who look while a long attempt runs.
func ExampleRuns_Progress() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	note, err := rt.Runs().Progress(context.Background(), "run_1")
	fmt.Println(note == nil, err) // no attempt has left one
	// Output: true <nil>
}

func ExampleRuns_Prune() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.drain()
	rt.now = rt.now.Add(91 * 24 * time.Hour)

	options := &core.PruneOptions{OlderThan: 90 * 24 * time.Hour, Statuses: []runlane.Status{runlane.StatusSucceeded}}
	for {
		result := do(rt.Runs().Prune(context.Background(), options))
		fmt.Println(result.Changed, "removed")
		if result.Next == "" {
			return
		}
		options.After = result.Next
	}
	// Output: 1 removed
}

// Reset lets the next trigger with the key make a new run.
func ExampleIdempotencyKeys_Reset() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.drain()
	ctx := context.Background()
	fmt.Println(rt.IdempotencyKeys().Reset(ctx, "mail.welcome", "ada@example.org"))
	result := do(rt.Trigger(ctx, welcome.With("ada@example.org"), nil))
	fmt.Println(result.Outcome)
	// Output:
	// <nil>
	// created
}

// remembered is a run of the example that remembers a step and a snapshot.
func remembered() (*core.Runtime, runlane.RunID) {
	task := runlane.NewTask[string]("orders.place", nil)
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{Handlers: []runlane.Handler{
		task.Handle(func(ctx context.Context, a *runlane.Attempt, order string) error {
			err := a.Do(ctx, "charge", func(context.Context) error { return nil })
			if err != nil {
				return err
			}
			return a.Snapshot(ctx, "order", order)
		}),
	}})
	if err != nil {
		panic(err)
	}
	result, err := rt.RunNow(context.Background(), task.With("tea"), nil)
	if err != nil {
		panic(err)
	}
	return rt, result.Run.ID
}

func ExampleRuns_Receipts() {
	task := runlane.NewTask[string]("orders.notify", nil)
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{Handlers: []runlane.Handler{
		task.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptHTTP, Request: "POST https://example.com", Status: 202})
			return nil
		}),
	}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	result, err := rt.RunNow(context.Background(), task.With("tea"), nil)
	if err != nil {
		panic(err)
	}
	receipts, err := rt.Runs().Receipts(context.Background(), result.Run.ID)
	for _, receipt := range receipts {
		fmt.Println(receipt.Attempt, receipt.Request, receipt.Status, err)
	}
	kept, err := rt.Runs().Kept(context.Background(), result.Run.ID) // with the steps
	fmt.Println(len(kept.Receipts), len(kept.Steps), err)
	// Output:
	// 1 POST https://example.com 202 <nil>
	// 1 0 <nil>
}

func ExampleRuns_Steps() {
	rt, id := remembered()
	defer func() { _ = rt.Close(context.Background()) }()
	steps, err := rt.Runs().Steps(context.Background(), id)
	for _, step := range steps {
		fmt.Println(step.Kind, step.Name, step.Attempt, err)
	}
	// Unordered output:
	// step charge 1 <nil>
	// snapshot order 1 <nil>
}

func ExampleRuns_Snapshots() {
	rt, id := remembered()
	defer func() { _ = rt.Close(context.Background()) }()
	snapshots, err := rt.Runs().Snapshots(context.Background(), id)
	fmt.Println(snapshots[0].Name, string(snapshots[0].Result), err)
	// Output: order "tea" <nil>
}
