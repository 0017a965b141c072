package runlanetest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

const (
	// DefaultAttemptLimit bounds one attempt, in real time.
	DefaultAttemptLimit = 30 * time.Second
	// DefaultMaxSteps bounds the attempts and jumps of the clock in one call.
	DefaultMaxSteps = 10_000

	// bubbleAttemptLimit bounds an attempt in a bubble, in virtual time.
	bubbleAttemptLimit = 24 * time.Hour
	// closeTime bounds the wait for running calls at the end of a test.
	closeTime = 5 * time.Second
)

// defaultStart is the default first instant: a Thursday.
var defaultStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Options of [New]. nil means none: the runtime accepts triggers but executes no runs.
type Options struct {
	// AllowSwallowed lets a handler return nil after one of its calls was suspended; its run waits all the same.
	// Without it the test fails with the name of the call.
	AllowSwallowed bool

	// AttemptLimit bounds one attempt, in real time. A longer one fails the test. 0 means DefaultAttemptLimit; a day
	// with Synctest, where time is virtual.
	AttemptLimit time.Duration

	// Handlers execute their tasks. Runs of other tasks can be triggered, and wait.
	Handlers []runlane.Handler

	// Logger of the runtime and the attempts. nil means the test's log, from slog.LevelInfo on, with the runtime's
	// time.
	Logger *slog.Logger

	// MaxSteps bounds the attempts and jumps of the clock in one call; more fail the test. Advance counts each instant
	// separately. 0 means DefaultMaxSteps.
	MaxSteps int

	// Middleware wraps every attempt, the first one outermost, see core.Options.
	Middleware []runlane.Middleware

	// Queues to work on, in addition to the queues of the handlers' tasks.
	Queues []runlane.Queue

	// Schedules make runs as the clock moves. New registers them, so an occurrence at the first instant does not fire.
	Schedules []runlane.Schedule

	// Start is the first instant. The zero time means 2026-01-01 00:00 UTC. Not with Synctest.
	Start time.Time

	// Synctest: the test is in a testing/synctest bubble. The runtime uses its clock, so that sleeps and timers of
	// handlers, and TaskOptions.Timeout, take no time either.
	Synctest bool
}

// Runtime is a runtime in memory with a clock that the test moves. It has all methods of [core.Runtime]: trigger, list,
// explain, cancel, pause schedules. Attempts execute only during [Runtime.Settle], [Runtime.Advance], [Runtime.Finish]
// and [Runtime.FinishAll], one after the other; only one goroutine at a time may call these, and handlers may not. All
// other methods are safe for concurrent use. It belongs to the test that made it: a subtest makes its own.
//
// After Runs().Cancel the handler's context ends at once, and it has 5 s of real time to return.
type Runtime struct {
	*core.Runtime

	t         testing.TB
	clock     clock
	world     *core.World
	logger    *slog.Logger
	limit     time.Duration
	maxSteps  int
	schedules []runlane.Schedule
	tasks     map[runlane.TaskID]bool    // with a handler here
	queues    map[runlane.QueueName]bool // worked on here
	delivery  core.DeliveryOptions
	lenient   bool       // Options.AllowSwallowed
	moving    sync.Mutex // held by the one call that executes

	mu        sync.Mutex
	executing runlane.RunID
	swallows  bool                    // the attempt ended without an error
	interrupt context.CancelCauseFunc // of the attempt in progress
}

var _ runlane.Triggerer = (*Runtime)(nil)

// New opens a runtime that closes with the test. Invalid options end the test with all errors of core.Open.
func New(t testing.TB, options *Options) *Runtime {
	t.Helper()
	if options == nil {
		options = &Options{}
	}
	if fault := options.fault(); fault != "" {
		t.Fatalf("runlanetest.New: %s", fault)
	}
	rt := &Runtime{
		t:         t,
		limit:     options.AttemptLimit,
		maxSteps:  options.MaxSteps,
		lenient:   options.AllowSwallowed,
		schedules: options.Schedules,
		tasks:     map[runlane.TaskID]bool{},
		queues:    map[runlane.QueueName]bool{},
	}
	rt.settleOptions(options)
	logger := options.Logger
	if logger == nil {
		logger = newLogger(newTestLog(t), rt.Now)
	}
	rt.logger, rt.world = logger, counted(rt.Now)
	storage := tableLimits{memlane.NewStorage(&memlane.StorageOptions{Now: rt.Now})}
	l, err := lane.New(storage, memlane.NewTransport(nil), &lane.Options{Name: "runlanetest"})
	if err != nil {
		t.Fatalf("runlanetest.New: %v", err)
	}
	rt.Runtime, err = core.Open(t.Context(), l, &core.Options{
		Handlers:   options.Handlers,
		Hooks:      []core.Hook{rt.watch},
		Logger:     logger,
		Middleware: rt.middleware(options.Middleware),
		Queues:     options.Queues,
		Schedules:  options.Schedules,
		TokenKeys:  [][]byte{[]byte("answer tokens of runlanetest, 32+")},
		World:      rt.world,
	})
	if err != nil {
		t.Fatalf("runlanetest.New: %v", err)
	}
	t.Cleanup(rt.close)
	if _, err := rt.Tick(t.Context(), nil); err != nil { // registers the schedules
		t.Fatalf("runlanetest.New: %v", err)
	}
	return rt
}

// Run executes one run of a task in memory, from its trigger to its end, and returns its history. The clock jumps over
// every wait: a task that gives up after a week of retries takes milliseconds. Runs triggered by the handler are in
// [History.Children]; they wait, unless they are of the same task. Use [New] for several tasks or other options.
//
// A run that does not end fails the test, with the reason.
func Run(t testing.TB, handler runlane.Handler, call runlane.Call) *History {
	t.Helper()
	rt := New(t, &Options{Handlers: []runlane.Handler{handler}})
	return rt.Finish(rt.MustTrigger(call, nil).ID)
}

func (o *Options) fault() string {
	switch {
	case o.AttemptLimit < 0:
		return "Options.AttemptLimit is negative: use 0 for the default, or a time"
	case o.MaxSteps < 0:
		return "Options.MaxSteps is negative: use 0 for the default, or a number"
	case o.Synctest && !o.Start.IsZero():
		return "Options.Start is set with Options.Synctest: the bubble's clock has a fixed start. Leave one of " +
			"them out"
	default:
		return ""
	}
}

func (rt *Runtime) settleOptions(o *Options) {
	start := o.Start
	if start.IsZero() {
		start = defaultStart
	}
	rt.clock = &drivenClock{at: runlane.UTCMillis(start)}
	if o.Synctest {
		rt.clock = bubbleClock{}
	}
	switch {
	case rt.limit == 0 && o.Synctest:
		rt.limit = bubbleAttemptLimit
	case rt.limit == 0:
		rt.limit = DefaultAttemptLimit
	}
	if rt.maxSteps == 0 {
		rt.maxSteps = DefaultMaxSteps
	}
	for _, h := range o.Handlers {
		if h.Task != nil { // else core.Open reports it
			rt.tasks[h.Task.ID] = true
			rt.queues[h.Task.Queue.Name] = true
		}
	}
	for _, q := range o.Queues {
		rt.queues[q.Name] = true
	}
	rt.delivery.WorkerID = "worker"
	rt.delivery.Queues = slices.Sorted(maps.Keys(rt.queues))
}

// middleware adds an outermost middleware that records the executing run and its handler's error.
func (rt *Runtime) middleware(own []runlane.Middleware) []runlane.Middleware {
	observe := func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
		rt.mu.Lock()
		rt.executing = a.Run.ID
		rt.mu.Unlock()
		err := next(ctx)
		rt.mu.Lock()
		defer rt.mu.Unlock()
		rt.swallows = err == nil
		return err
	}
	return append([]runlane.Middleware{observe}, own...)
}

// watch is a hook that ends the attempt's context at once after a cancellation request. With heartbeats alone this
// would take a third of a lease, in real time.
func (rt *Runtime) watch(change core.Change) {
	if change.Run.Status != runlane.StatusCancellationRequested {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.interrupt != nil && rt.executing == change.Run.ID {
		rt.interrupt(runlane.ErrCancelRequested)
	}
}

func (rt *Runtime) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(rt.t.Context()), closeTime)
	defer cancel()
	if err := rt.Close(ctx); err != nil {
		rt.t.Errorf("runlanetest: the runtime does not close: %v", err)
	}
}

// Now returns the runtime's time. Pass rt.Now to code that needs a clock.
func (rt *Runtime) Now() time.Time { return rt.clock.now() }

// MustTrigger is [core.Runtime.Trigger], except that an error ends the test. An existing run with the same key is
// returned like a new one. It executes no runs.
func (rt *Runtime) MustTrigger(call runlane.Call, options *runlane.TriggerOptions) *runlane.Run {
	rt.t.Helper()
	result, err := rt.Trigger(rt.t.Context(), call, options)
	if err != nil {
		task := runlane.TaskID("")
		if call.Task != nil {
			task = call.Task.ID
		}
		rt.t.Fatalf("runlanetest: task %q was not triggered: %v", task, err)
	}
	return result.Run
}

// History returns the current state of a run with its events. A missing run ends the test.
func (rt *Runtime) History(id runlane.RunID) *History {
	rt.t.Helper()
	return HistoryOf(rt.t, rt.Runtime, id)
}

// Histories returns the runs of a task in order of creation; "" means all tasks.
func (rt *Runtime) Histories(task runlane.TaskID) []*History {
	rt.t.Helper()
	histories, err := readHistories(rt.t.Context(), rt.Runtime, task)
	if err != nil {
		rt.t.Fatalf("runlanetest: the runs cannot be read: %v", err)
	}
	return histories
}

// errAttemptLimit is the context's cause at the limit of an attempt.
var errAttemptLimit = errors.New("runlanetest: the attempt took too long")
