package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// What ticks will remove, counted up to about 100 runs.
func ExampleRuns_Keeping() {
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Keep: runlane.KeepAll(runlane.KeepForever)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	keeping, err := rt.Runs().Keeping(ctx, 100)
	fmt.Println(keeping.Rule.Failed == runlane.KeepForever, len(keeping.Overdue), keeping.More, err)
	// Output: true 0 false <nil>
}

func ExampleQueues_List() {
	ctx := context.Background()
	rt := do(core.Open(ctx, memlane.New(), &core.Options{Queues: []runlane.Queue{{Name: "mail", Concurrency: 2}}}))
	defer func() { _ = rt.Close(ctx) }()
	for _, q := range rt.Queues().List() {
		fmt.Println(q.Queue.Name, q.Queue.Concurrency, q.Known, q.Bound)
	}
	// Output:
	// default 0 true true
	// mail 2 true true
}

// Large bodies are kept apart from their runs. Some may be left without a run, as by a trigger that was refused.
func ExampleRuns_OrphanedBodies() {
	ctx := context.Background()
	rt := do(core.Open(ctx, memlane.New(), nil))
	defer func() { _ = rt.Close(ctx) }()
	found := do(rt.Runs().OrphanedBodies(ctx, &core.OrphanOptions{Remove: true}))
	fmt.Println(found.Seen, found.Orphans, found.Removed)
	// Output: 0 0 0
}

// A program without tasks, like a command line, finds the queues that others use.
func ExampleQueues_InUse() {
	ctx := context.Background()
	rt := openExample()
	defer rt.close()
	do(rt.Tick(ctx, nil)) // stores the tasks
	operator := do(core.Open(ctx, rt.Lane(), &core.Options{World: &core.World{Now: func() time.Time { return rt.now }}}))
	defer func() { _ = operator.Close(ctx) }()
	for _, q := range do(operator.Queues().InUse(ctx)) {
		fmt.Println(q.Queue.Name, q.Known, q.Stored)
	}
	// Output:
	// default true false
	// mail false true
}

// A fault downstream: runs are made, and none starts until someone resumes.
func ExampleQueues_Pause() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	do(rt.Queues().Pause(ctx, "mail", &core.PauseOptions{ChangeOptions: core.ChangeOptions{Reason: "the mail server is down"}}))
	made := do(rt.Trigger(ctx, welcome.With("ada@example.org"), nil))
	next := do(rt.ExecuteNext(ctx, nil))
	fmt.Println(made.Run.Status, next.Run == nil, do(rt.Queues().Pauses(ctx))[0].Reason)
	do(rt.Queues().Resume(ctx, "mail", nil))
	next = do(rt.ExecuteNext(ctx, nil))
	fmt.Println(next.Run.Status)
	// Output:
	// queued true the mail server is down
	// succeeded
}

// A task is paused in all of its queues.
func ExampleTasks_Pause() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	paused := do(rt.Tasks().Pause(ctx, welcome.ID(), &core.PauseOptions{Until: rt.now.Add(time.Hour)}))
	fmt.Println(paused.Until.Sub(paused.Since))
	resumed := do(rt.Tasks().Resume(ctx, welcome.ID(), nil))
	fmt.Println(resumed.ResumedAt.Equal(rt.now))
	// Output:
	// 1h0m0s
	// true
}

func ExampleQueues_Stats() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	rt.start("run_1", "ada@example.org")
	do(rt.Trigger(ctx, welcome.With("bob@example.org"), &runlane.TriggerOptions{Delay: time.Hour}))
	stats, err := rt.Queues().Stats(ctx, "mail")
	fmt.Println(stats.Waiting, "waiting,", stats.Delayed, "later, next at", stats.NextDue.Format(time.TimeOnly), err)
	// Output: 1 waiting, 1 later, next at 13:00:00 <nil>
}

// nightly fires at three in the morning in Berlin.
var nightly = runlane.Schedule{
	ID: "nightly", When: runlane.Cron("0 3 * * *").In("Europe/Berlin"), Call: welcome.With("everybody"), Overlap: runlane.OverlapForbid,
}

// Its next times, as its own zone shows them.
func ExampleSchedules_When() {
	rt := openExample(nightly)
	defer rt.close()
	when, known := rt.Schedules().When("nightly")
	times := do(rt.Schedules().Preview("nightly", 1))
	fmt.Println(known, when, times[0].In(when.Location()).Format(time.DateTime))
	// Output: true cron 0 3 * * * in Europe/Berlin 2026-03-02 03:00:00
}

func ExampleSchedules_Preview() {
	rt := openExample(nightly)
	defer rt.close()
	times, err := rt.Schedules().Preview("nightly", 2)
	for _, at := range times {
		fmt.Println(at.UTC().Format(time.DateTime))
	}
	fmt.Println(err)
	// Output:
	// 2026-03-02 02:00:00
	// 2026-03-03 02:00:00
	// <nil>
}

func ExampleSchedules_List() {
	rt := openExample(nightly)
	defer rt.close()
	for s, err := range rt.Schedules().List(context.Background()) {
		ok(err)
		fmt.Println(s.ID, s.Known, s.Paused, s.Next.UTC().Format(time.DateTime))
	}
	// Output: nightly true false 2026-03-02 02:00:00
}

// What comes due during a pause is recorded as skipped, and never fires.
func ExampleSchedules_Pause() {
	rt := openExample(nightly)
	defer rt.close()
	ctx := context.Background()
	ok(rt.Schedules().Pause(ctx, "nightly", &core.ChangeOptions{Reason: "the list is being cleaned"}))
	state := do(rt.Schedules().Get(ctx, "nightly"))
	fmt.Println(state.Paused, state.PauseReason)

	rt.now = rt.now.Add(72 * time.Hour)
	ok(rt.Schedules().Resume(ctx, "nightly", nil))
	for o, err := range rt.Schedules().Occurrences(ctx, "nightly", true) {
		ok(err)
		fmt.Println(o.Count, "skipped:", o.Skipped)
	}
	// Output:
	// true the list is being cleaned
	// 3 skipped: paused
}

func ExampleSchedules_TriggerNow() {
	rt := openExample(nightly)
	defer rt.close()
	run, err := rt.Schedules().TriggerNow(context.Background(), "nightly", &core.ChangeOptions{Reason: "asked for by Ada"})
	fmt.Println(run.Source.Type, run.Source.ScheduleID, run.Status, err)
	// Output: schedule nightly queued <nil>
}

// refusing is a transport that can never take a wakeup while refuse is set, as one that lacks a permission.
type refusing struct {
	*memlane.Transport

	refuse bool
}

func (r *refusing) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if !r.refuse {
		return r.Transport.PublishWakeups(ctx, c)
	}
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		failure := runlane.NewFailure(runlane.ErrTransportPublishFailed, "not allowed", nil)
		outcomes[i] = lane.PublishOutcome{Type: lane.PublishFailed, Failure: failure, Permanent: true}
	}
	return outcomes, nil
}

// A wakeup that was given up waits for a person, who corrects the cause first.
func ExampleDeadLetters_Requeue() {
	ctx := context.Background()
	transport := &refusing{Transport: memlane.NewTransport(nil), refuse: true}
	l := do(lane.New(memlane.NewStorage(nil), transport, nil))
	rt := do(core.Open(ctx, l, &core.Options{Logger: slog.New(slog.DiscardHandler)}))
	defer func() { _ = rt.Close(ctx) }()
	do(rt.Trigger(ctx, runlane.NewTask[int]("count", nil).With(1), &runlane.TriggerOptions{RunID: "run_1"}))

	page := do(rt.DeadLetters().List(ctx, nil))
	for _, letter := range page.Items {
		fmt.Println(letter.RunID, letter.Failure.Message)
	}
	transport.refuse = false // corrected
	fmt.Println(rt.DeadLetters().Requeue(ctx, "run_1", &core.ChangeOptions{Reason: "permission was missing"}))

	left := do(rt.DeadLetters().RequeueAll(ctx, &core.BulkOptions{AllRuns: true}))
	fmt.Println(left.Matched, "left")
	// Output:
	// run_1 not allowed
	// <nil>
	// 0 left
}

// A program without handlers triggers what another program executes: its tasks are in the catalog, once a tick has stored them.
func ExampleTasks_List() {
	rt := openExample()
	defer rt.close()
	ctx := context.Background()
	do(rt.Tick(ctx, nil))

	l := do(lane.New(rt.Lane().Storage, memlane.NewTransport(nil), nil)) // as if it were another process
	other := do(core.Open(ctx, l, &core.Options{Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: func() time.Time { return rt.now }}}))
	defer func() { _ = other.Close(ctx) }()
	for _, task := range do(other.Tasks().List(ctx)) {
		fmt.Println(task.ID, "from", task.Queue.Name, task.Known, task.Gone(rt.now))
		call := runlane.NewRawCall(task.Definition(), []byte(`"ada@example.org"`))
		result := do(other.Trigger(ctx, call, &runlane.TriggerOptions{IdempotencyKey: "ada@example.org"}))
		fmt.Println(result.Outcome)
	}
	// Output:
	// mail.welcome from mail false false
	// created
}
