package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

const loadEnvironment = runlane.Environment("load")

// load is a runtime over one lane, whose ticks and workers run when a case says so.
type load struct {
	*testing.T

	runs    int
	virtual bool         // in a bubble, where waiting takes no time
	ahead   atomic.Int64 // nanoseconds before the real clock, where time does not pass by waiting

	over     func() (took time.Duration, peak uint64) // ends the measurement; what checks the result comes behind it
	storage  lane.Storage
	store    *dynamostore.Store // nil on the embedded lane
	requests atomic.Int64       // that DynamoDB got
	ticks    atomic.Int64       // in which it got them
	idle     int64              // requests of a tick with nothing to do
	used     int64              // requests of the load
	wire     *wire
	rt       *core.Runtime
	notes    []string // for the line that is printed
}

// wire counts the wakeups that it carries.
type wire struct {
	*memlane.Transport

	sent, delayed atomic.Int64
}

func (w *wire) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	w.sent.Add(int64(len(c.Attempts)))
	return w.Transport.PublishWakeups(ctx, c)
}

func (w *wire) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	w.delayed.Add(int64(len(wakeups)))
	return w.Transport.SendWakeups(ctx, wakeups)
}

func (w *load) openMemory() {
	w.virtual, w.storage = true, memlane.NewStorage(nil)
}

// openDynamoDB counts every request that leaves the SDK, its own retries included.
func (w *load) openDynamoDB() {
	client := awstest.DynamoDB(w)
	counting := dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.Logger = logging.Nop{} // it says when a connection is left because a request has ended
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("count", func(
				ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
			) (middleware.DeserializeOutput, middleware.Metadata, error) {
				w.requests.Add(1)
				return next.HandleDeserialize(ctx, in)
			}), middleware.After)
		})
	})
	// A slow machine is no outage of the emulator.
	w.store = dynamostore.New(counting, awstest.Table(w, client), &dynamostore.Options{Now: w.now, RequestTimeout: awstest.RequestTimeout})
	w.storage = w.store
}

// open starts the runtime. What opening costs is no run's.
func (w *load) open(options *core.Options) {
	w.Helper()
	w.wire = &wire{Transport: memlane.NewTransport(nil)}
	l, err := lane.New(w.storage, w.wire, nil)
	w.must(err)
	options.Environment, options.Logger, options.World = loadEnvironment, slog.New(slog.DiscardHandler), &core.World{Now: w.now}
	w.rt, err = core.Open(w.Context(), l, options)
	w.must(err)
	w.Cleanup(func() { w.must(w.rt.Close(context.Background())) })
	w.tick() // registers schedules, and stores the tasks
	before := w.requests.Load()
	w.tick()
	w.idle = w.requests.Load() - before
	w.requests.Store(0)
	w.ticks.Store(0)
}

func (w *load) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v, cause: %v", err, errors.Unwrap(err))
	}
}

func (w *load) note(key string, value any) {
	w.notes = append(w.notes, fmt.Sprintf("%s=%v", key, value))
}

// now is the clock of runtime and storage.
func (w *load) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// pass lets time pass: in a bubble as it does, elsewhere by setting the clock. There no process may be at work.
func (w *load) pass(d time.Duration) {
	if w.virtual {
		<-time.After(d)
		return
	}
	w.ahead.Add(int64(d))
}

// triggerAll triggers runs as one batch.
func (w *load) triggerAll(items []core.BatchItem) (ids []runlane.RunID) {
	w.Helper()
	results, err := w.rt.TriggerBatch(w.Context(), items)
	w.must(err)
	for i := range results {
		w.must(results[i].Err)
		ids = append(ids, results[i].Result.Run.ID)
	}
	return ids
}

// tick bounds a tick by its rows alone: how many a machine gets through in a minute is no case's matter.
func (w *load) tick() *core.TickResult {
	w.Helper()
	result, err := w.rt.Tick(w.Context(), &core.TickOptions{Deadline: w.now().Add(loadLimit)})
	w.must(err)
	w.ticks.Add(1)
	return result
}

// tickAll ticks until nothing more is to be done at once.
func (w *load) tickAll() (ticks int) {
	w.Helper()
	for more := true; more; ticks++ {
		more = w.tick().More
	}
	return ticks
}

// dies lets a worker claim a run, begin its attempt, and never be heard of again.
func (w *load) dies(id runlane.RunID) {
	w.Helper()
	run, err := w.rt.Runs().Get(w.Context(), id)
	w.must(err)
	at := runlane.UTCMillis(w.now())
	event := func(body runlane.EventBody) runlane.Event {
		return runlane.Event{RunID: id, Environment: loadEnvironment, OccurredAt: at, Actor: runlane.SystemActor, Body: body}
	}
	events := []runlane.Event{
		event(&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "held-" + string(id), WorkerID: "dead", ExpiresAt: at.Add(runlane.DefaultLease)}}),
		event(&runlane.RunStarted{Attempt: 1}),
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	w.must(err)
	got, err := w.storage.ClaimRunLease(w.Context(), &lane.ClaimCommand{
		Transition: lane.Transition{ExpectedSequence: run.EventSequence, Events: events, Projected: projected, Queue: runlane.DefaultQueue},
		At:         at, ByWakeup: true,
	})
	w.must(err)
	if got.Outcome != lane.Acquired {
		w.Fatalf("the run was not claimed: %s", got.Outcome)
	}
}

// loadLimit is how long a case may take, in the time of its lane, before it counts as stuck.
const loadLimit = 2 * time.Hour

// work ticks, and executes wakeups of a queue with so many attempts at once, until the case is done and the worker has stopped.
func (w *load) work(queue runlane.QueueName, concurrency int, done func() bool) (ticks int) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	worked := make(chan error, 1)
	go func() { // ends with stop
		worked <- w.rt.Work(ctx, &core.WorkOptions{Concurrency: concurrency, NoTick: true, Queues: []runlane.QueueName{queue}})
	}()
	for deadline := w.now().Add(loadLimit); !done(); {
		if w.now().After(deadline) {
			w.Error("the case does not come to its end")
			break
		}
		ticks += w.tickAll()
		w.rest(queue, done)
	}
	stop()
	w.must(<-worked)
	return ticks
}

// rest waits for the minute after which a process ticks again. Where time does not pass by waiting, it is over once no process is at work.
func (w *load) rest(queue runlane.QueueName, done func() bool) {
	w.Helper()
	if w.virtual {
		w.pass(time.Minute)
		return
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for idle := 0; !done(); idle++ {
		<-look.C
		visible, inFlight, err := w.wire.Depth(w.Context(), queue)
		w.must(err)
		if visible+inFlight > 0 {
			idle = 0
		}
		if idle == 30 { // long enough for a wakeup that a timer still has
			w.pass(time.Minute)
			return
		}
	}
}

// ended ends what is measured.
func (w *load) ended() {
	w.over()
	w.used = w.requests.Load() - w.ticks.Load()*w.idle
}

// settled demands that so many runs exist, that they have all ended as they should after as many attempts, and that no invariant of
// the storage is broken.
func (w *load) settled(runs int, want func(run *runlane.RunSummary) (runlane.Status, int)) {
	w.Helper()
	w.ended()
	seen := make(map[runlane.RunID]bool, runs)
	for run, err := range w.rt.Runs().All(w.Context(), &core.ListOptions{Limit: runlane.MaxPageLimit}) {
		w.must(err)
		if seen[run.ID] {
			w.Errorf("run %s is listed twice", run.ID)
		}
		seen[run.ID] = true
		if status, attempts := want(&run); run.Status != status || run.Counters.Attempts != attempts {
			w.Errorf("run %s is %s after %d attempts, want %s after %d", run.ID, run.Status, run.Counters.Attempts, status, attempts)
		}
	}
	if len(seen) != runs {
		w.Errorf("%d runs are kept, want %d", len(seen), runs)
	}
	w.checked()
}

// once is what a run without faults is in the end.
func once(*runlane.RunSummary) (runlane.Status, int) { return runlane.StatusSucceeded, 1 }

// checked demands that no invariant is broken.
func (w *load) checked() {
	w.Helper()
	found, err := crash.Violations(w.Context(), w.storage, loadEnvironment)
	w.must(err)
	for _, v := range found {
		w.Errorf("%s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
}
