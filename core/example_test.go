package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// welcome has a handler that fails for one address, and knows of each address once.
var welcome = runlane.NewTask("mail.welcome", &runlane.TaskOptions[string]{
	IdempotencyKey: func(address string) string { return address },
	Queue:          runlane.Queue{Name: "mail"},
})

func sendWelcome(_ context.Context, a *runlane.Attempt, address string) error {
	if address == "missing" {
		return runlane.Permanent(errors.New("no such mailbox"))
	}
	return a.SetOutput("sent to " + address)
}

// exampleNoon is where the clock of the Examples stands, until one moves it.
var exampleNoon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// exampleRuntime is a separate runtime on an embedded lane, with a clock that the Example moves.
type exampleRuntime struct {
	*core.Runtime

	now time.Time
}

// openExample opens it. An error ends the Example, as does every other one: see do.
func openExample(schedules ...runlane.Schedule) *exampleRuntime {
	x := &exampleRuntime{now: exampleNoon}
	clock := func() time.Time { return x.now }
	l := do(lane.New(memlane.NewStorage(&memlane.StorageOptions{Now: clock}), memlane.NewTransport(nil), nil))
	x.Runtime = do(core.Open(context.Background(), l, &core.Options{
		Handlers: []runlane.Handler{welcome.Handle(sendWelcome)}, Schedules: schedules,
		Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: clock},
	}))
	return x
}

// close ends it.
func (x *exampleRuntime) close() { ok(x.Close(context.Background())) }

// drain executes everything that is due.
func (x *exampleRuntime) drain() {
	ok(x.Work(context.Background(), &core.WorkOptions{Drain: true}))
}

// start triggers a run with an id that Examples can print.
func (x *exampleRuntime) start(id runlane.RunID, address string) {
	do(x.Trigger(context.Background(), welcome.With(address), &runlane.TriggerOptions{RunID: id}))
}

// do returns a result, or ends the Example.
func do[T any](result T, err error) T {
	ok(err)
	return result
}

// ok ends the Example when there is an error.
func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleOpen() {
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers: []runlane.Handler{welcome.Handle(sendWelcome)},
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err) // every fault of every definition at once
	}
	defer func() { _ = rt.Close(ctx) }() // closes the lane too

	result, err := rt.Trigger(ctx, welcome.With("ada@example.org"), nil)
	if err != nil {
		panic(err)
	}
	if err := rt.Work(ctx, &core.WorkOptions{Drain: true}); err != nil { // without Drain: until ctx ends
		panic(err)
	}
	run, err := rt.Wait(ctx, result.Run.ID)
	fmt.Println(run.Status, string(run.Output), err)
	// Output: succeeded "sent to ada@example.org" <nil>
}

func ExampleRuntime_Trigger() {
	rt := openExample()
	defer rt.close()
	for range 2 {
		result, err := rt.Trigger(context.Background(), welcome.With("ada@example.org"), nil)
		fmt.Println(result.Outcome, err)
	}
	// Output:
	// created <nil>
	// returned_existing <nil>
}

func ExampleRuntime_Trigger_later() {
	rt := openExample()
	defer rt.close()
	result, err := rt.Trigger(context.Background(), welcome.With("ada@example.org"), &runlane.TriggerOptions{
		Delay: 24 * time.Hour, // or RunAt
		Meta:  map[string]string{"campaign": "spring"},
	})
	fmt.Println(result.Run.Status, result.Run.RunAt.Format(time.DateTime), err)
	// Output: scheduled 2026-03-02 12:00:00 <nil>
}

// One bad item is an error of that result only.
func ExampleRuntime_TriggerBatch() {
	rt := openExample()
	defer rt.close()
	results, err := rt.TriggerBatch(context.Background(), []core.BatchItem{
		{Call: welcome.With("ada@example.org")},
		{Call: welcome.With("bob@example.org"), Options: &runlane.TriggerOptions{Delay: -time.Second}},
		{Call: welcome.With("cem@example.org"), Options: &runlane.TriggerOptions{Delay: time.Hour}},
	})
	for _, r := range results {
		if r.Err != nil {
			fmt.Println(runlane.CodeOf(r.Err))
			continue
		}
		fmt.Println(r.Result.Outcome, r.Result.Run.Status)
	}
	fmt.Println(err)
	// Output:
	// created queued
	// validation_failed
	// created scheduled
	// <nil>
}

// RunNow executes one attempt here, in the request that asks for it.
func ExampleRuntime_RunNow() {
	rt := openExample()
	defer rt.close()
	result, err := rt.RunNow(context.Background(), welcome.With("ada@example.org"), nil)
	fmt.Println(result.Run.Status, string(result.Run.Output), err)
	// Output: succeeded "sent to ada@example.org" <nil>
}

// Wait is for the caller who needs the result of a run that another process executes.
func ExampleRuntime_Wait() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "missing")
	rt.drain()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := rt.Wait(ctx, "run_1")
	fmt.Println(run.Status, run.Failure.Code, err)
	// Output: failed task_failed <nil>
}

// ExecuteNext is for programs that decide themselves when to work, like a cron job.
func ExampleRuntime_ExecuteNext() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	for {
		result, err := rt.ExecuteNext(context.Background(), &core.DeliveryOptions{WorkerID: "nightly"})
		if err != nil || result.Run == nil { // nothing is due
			fmt.Println("done,", err)
			return
		}
		fmt.Println(result.Run.ID, result.Run.Status)
	}
	// Output:
	// run_1 succeeded
	// done, <nil>
}

// ExecuteDelivery is for a program that receives wakeups by itself. Repeating one does no harm.
func ExampleRuntime_ExecuteDelivery() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")

	wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: rt.Environment(), RunID: "run_1"}, Queue: "mail", RequestedAt: rt.now}
	for range 2 {
		result, err := rt.ExecuteDelivery(context.Background(), wakeup, &core.DeliveryOptions{WorkerID: "consumer"})
		fmt.Printf("%s %q %v\n", result.Run.Status, result.Ignored, err)
	}
	// Output:
	// succeeded "" <nil>
	// succeeded "terminal" <nil>
}

// What a wakeup missed, a tick finds. Workers tick by themselves; functions have a separate one.
func ExampleRuntime_Tick() {
	rt := openExample(runlane.Schedule{ID: "hourly", When: runlane.Every(time.Hour), Call: welcome.With("everybody")})
	defer rt.close()
	ctx := context.Background()
	do(rt.Tick(ctx, nil)) // registers the schedule: what lies before never fires

	rt.now = rt.now.Add(time.Hour)
	result, err := rt.Tick(ctx, &core.TickOptions{Limit: 50})
	fmt.Println(result.Scheduled.Done, "run made, more to do:", result.More, err)
	// Output: 1 run made, more to do: false <nil>
}

// CallJSON is for HTTP endpoints and command lines, where the task is a name and the payload is text.
func ExampleRuntime_CallJSON() {
	rt := openExample()
	defer rt.close()
	for _, d := range rt.Definitions() {
		fmt.Println("this program executes", d.ID, "from", d.Queue.Name)
	}
	call, err := rt.CallJSON("mail.welcome", []byte(`"ada@example.org"`))
	if err != nil {
		panic(err)
	}
	result, err := rt.Trigger(context.Background(), call, nil)
	fmt.Println(result.Run.IdempotencyKey, err)

	_, err = rt.CallJSON("mail.welcom", nil)
	fmt.Println(runlane.CodeOf(err))
	// Output:
	// this program executes mail.welcome from mail
	// ada@example.org <nil>
	// task_not_found
}

// Lane is for an optional ability of an adapter, which lane.As finds.
func ExampleRuntime_Lane() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	_, receives := lane.As[lane.Receiver](rt.Lane().Transport)
	fmt.Println(receives)
	// Output: true
}

// counted prints what it is told.
type counted struct{}

func (counted) Count(name core.Metric, n int64, labels core.Labels) {
	fmt.Println(strings.TrimSpace(fmt.Sprint(name, " ", n, " ", labels.TaskID)))
}
func (counted) Observe(core.Metric, time.Duration, core.Labels) {}

// Metrics counts what this process does, for whatever system you have.
func ExampleMetrics() {
	var metrics core.Metrics = counted{}
	rt := do(core.Open(context.Background(), memlane.New(), &core.Options{Metrics: metrics}))
	defer func() { _ = rt.Close(context.Background()) }()
	do(rt.Trigger(context.Background(), runlane.NewTask[int]("count", nil).With(1), &runlane.TriggerOptions{Deferred: true}))
	// Output:
	// runs_created 1 count
	// deliveries_requested 1 count
}

// A hook sees every commit of this process, after it is durable. It is for watching: what has to happen is a task.
func ExampleHook() {
	seen := make(chan core.Change, 10)
	watch := core.Hook(func(change core.Change) { seen <- change })
	rt := do(core.Open(context.Background(), memlane.New(), &core.Options{Hooks: []core.Hook{watch}}))
	defer func() { _ = rt.Close(context.Background()) }()
	do(rt.Trigger(context.Background(), runlane.NewTask[int]("count", nil).With(1), nil))
	change := <-seen
	fmt.Println(change.Run.Status, len(change.Events), "events")
	// Output: queued 2 events
}

// A history is folded into the run that it adds up to, anywhere and at any time.
func ExampleProjectRunEvents() {
	rt := openExample()
	defer rt.close()
	rt.start("run_1", "ada@example.org")
	rt.drain()

	var run *runlane.Run
	for record, err := range rt.Runs().Events(context.Background(), "run_1", nil) {
		ok(err)
		run = do(core.ProjectRunEvents(run, record.Sequence-1, record.Event))
		fmt.Println(record.Sequence, record.Type(), run.Status)
	}
	// Output:
	// 1 run.created queued
	// 2 run.delivery_requested queued
	// 3 run.lease_claimed running
	// 4 run.started running
	// 5 run.succeeded succeeded
}
