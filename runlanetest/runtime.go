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
	// DefaultAttemptLimit is how long one attempt may take in real time.
	DefaultAttemptLimit = 30 * time.Second
	// DefaultMaxSteps is how many attempts and jumps of the clock one call makes at most.
	DefaultMaxSteps = 10_000

	// bubbleAttemptLimit is the limit of an attempt in a bubble, whose time is virtual.
	bubbleAttemptLimit = 24 * time.Hour
	// closeTime is how long the end of a test waits for calls that are still in progress.
	closeTime = 5 * time.Second
)

// defaultStart is when a runtime begins: a Thursday.
var defaultStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Options of [New]. nil means none: such a runtime takes triggers and executes nothing.
type Options struct {
	// AllowSwallowed lets a handler return nil although a call of it was suspended: its run waits all the same. Without
	// it the test fails, and the message names the call.
	AllowSwallowed bool

	// AttemptLimit is how long one attempt may take, in real time, before the test fails. 0 means DefaultAttemptLimit;
	// a day with Synctest, whose time is virtual.
	AttemptLimit time.Duration

	// Handlers are the tasks that execute. Runs of other tasks can be triggered, and wait.
	Handlers []runlane.Handler

	// Logger gets what the runtime and the attempts log. nil means the test's log, from slog.LevelInfo on, with the
	// runtime's own time.
	Logger *slog.Logger

	// MaxSteps is how many attempts and jumps of the clock one call makes at most before the test fails; Advance counts
	// those of each instant by themselves. 0 means DefaultMaxSteps.
	MaxSteps int

	// Middleware wraps every attempt, the first one outermost, see core.Options.
	Middleware []runlane.Middleware

	// Queues are worked on in addition to those that the handlers' tasks name.
	Queues []runlane.Queue

	// Schedules make runs as the clock moves. They are registered by New, so that what is due at the start itself does
	// not fire.
	Schedules []runlane.Schedule

	// Start is the first instant. The zero time means 2026-01-01 00:00 UTC. Not with Synctest.
	Start time.Time

	// Synctest says that the test is in a bubble of testing/synctest, whose clock is used then: sleeps and timers of
	// handlers, and TaskOptions.Timeout, take no time either.
	Synctest bool
}

// Runtime is a runtime in memory with a clock that the test moves. It can do whatever [core.Runtime] can: trigger,
// list, explain, cancel, pause schedules. Nothing is executed before [Runtime.Settle], [Runtime.Advance],
// [Runtime.Finish] or [Runtime.FinishAll] is called, and then one attempt after the other; only one goroutine at a time
// may call these, and no handler. Everything else is safe for concurrent use. It belongs to the test that made it: a
// subtest makes its own.
//
// A handler whose run is cancelled with Runs().Cancel learns of it at once, and has 5 s of real time to return.
type Runtime struct {
	*core.Runtime

	t         testing.TB
	clock     clock
	world     *core.World
	logger    *slog.Logger
	limit     time.Duration
	maxSteps  int
	schedules []runlane.Schedule
	tasks     map[runlane.TaskID]bool    // that execute here
	queues    map[runlane.QueueName]bool // that are worked on here
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

// Run executes one run of a task, from its trigger to its end, in the memory of the test, and returns its history. The
// clock jumps over every wait: a task that gives up after a week of retries takes milliseconds. Follow-ups that the
// handler triggers are in [History.Children]; they wait, unless they are runs of the same task. [New] is for more tasks
// than one, and for other options.
//
// A run that does not end fails the test, and the message says what it waits for.
func Run(t testing.TB, handler runlane.Handler, call runlane.Call) *History {
	t.Helper()
	rt := New(t, &Options{Handlers: []runlane.Handler{handler}})
	return rt.Finish(rt.MustTrigger(call, nil).ID)
}

// fault names the option that is invalid, or returns "".
func (o *Options) fault() string {
	switch {
	case o.AttemptLimit < 0:
		return "Options.AttemptLimit is negative: use 0 for the default, or a time"
	case o.MaxSteps < 0:
		return "Options.MaxSteps is negative: use 0 for the default, or a number"
	case o.Synctest && !o.Start.IsZero():
		return "Options.Start is set beside Options.Synctest: the bubble's clock has a fixed start. Leave one of " +
			"them out"
	default:
		return ""
	}
}

// settleOptions fills in what is left to its default.
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
		if h.Task != nil { // core.Open says what is wrong with it
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

// middleware adds an outermost one that knows which run is executing, and how its handler ended.
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

// watch is a hook that tells an attempt at once when its run's cancellation was requested. By heartbeats alone it would
// take a third of a lease, in real time.
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

// Now is the time of the runtime. Give it to code that asks for the time: rt.Now is a func() time.Time.
func (rt *Runtime) Now() time.Time { return rt.clock.now() }

// MustTrigger is [core.Runtime.Trigger] for the test itself: an error ends the test. A run that was there already, by
// its key, is returned like a new one. It executes nothing.
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

// History returns a run with its events, as it is now. A run that does not exist ends the test.
func (rt *Runtime) History(id runlane.RunID) *History {
	rt.t.Helper()
	return HistoryOf(rt.t, rt.Runtime, id)
}

// Histories returns the runs of a task in the order of their creation, all runs for "".
func (rt *Runtime) Histories(task runlane.TaskID) []*History {
	rt.t.Helper()
	histories, err := readHistories(rt.t.Context(), rt.Runtime, task)
	if err != nil {
		rt.t.Fatalf("runlanetest: the runs cannot be read: %v", err)
	}
	return histories
}

// errAttemptLimit is the cause that ends an attempt at its limit.
var errAttemptLimit = errors.New("runlanetest: the attempt took too long")
