package core

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/flow"
	"github.com/runlane/runlane-go/core/internal/schedule"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/lane"
)

// Runtime runs the tasks of one program on one lane. Create it with [Open]. It is safe for concurrent use.
type Runtime struct {
	lane         *lane.Lane
	environment  runlane.Environment // never "": a default is written as its name
	handlers     map[runlane.TaskID]runlane.Handler
	keysWarned   sync.Map // keys without effect that were logged
	clientTasks  map[runlane.TaskID]ClientTask
	claimIDs     claimIDs
	definitions  []*runlane.Definition // of handlers and clientTasks, by id
	queues       map[runlane.QueueName]runlane.Queue
	schedules    schedule.Scheduler
	bounded      []runlane.Queue     // the queues with a limit, by name
	bindings     []runlane.QueueName // nil: any queue
	delays       bool                // the transport can delay, in some queues
	undelayed    []runlane.QueueName // queues that cannot delay, if others can
	catalog      catalog
	callTurns    turns
	cascades     cascades
	givenBack    givenBack
	flows        flow.Flows
	ends         ends
	tended       atomic.Pointer[time.Time] // when a tick of this runtime last looked for flows to tend; nil: never
	logger       *slog.Logger
	failed       func(runID, text string) // the host's; nil without one
	hostShows    bool                     // the host shows failed attempts, so the log leaves them out
	hooks        *watchers
	watched      bool // hooks or metrics need the records of every commit
	metrics      gauges
	tracer       Tracer // nil: none
	maxAbandoned int    // -1: no limit
	keep         keeping
	coded        bool // there is a codec
	codec        *codedStorage
	maxBody      int          // bytes of a payload, an output, a result or a signal
	limits       lane.Storage // the storage without the store of bodies, for records that hold their bodies
	texts        errorTexts
	middleware   []runlane.Middleware
	world        World
	admitter     lane.Admitter // nil: the storage takes every trigger
	refusals     refusals
	realTime     bool // the world's clock is the process's
	workerID     string
	tokenKeys    [][]byte
	gate         gate
	executions   executionSet  // attempts of direct ExecuteDelivery calls
	executing    localAttempts // all attempts of this runtime
	suspects     chan struct{} // holds the one suspect that workers execute
	forceClose   chan struct{} // closed when Close stops waiting: workers then cut their grace short
}

var _ runlane.Triggerer = (*Runtime)(nil)

// Open checks all definitions and options, starts the lane and owns it from then on: Close closes it. It reports all
// problems at once, in one runlane.ErrConfigurationInvalid; errors.As and errors.Is see each of them. An ability that
// the lane lacks is runlane.ErrCapabilityUnsupported among them. After an error no goroutine is left running.
func Open(ctx context.Context, l *lane.Lane, options *Options) (*Runtime, error) {
	if options == nil {
		options = &Options{}
	}
	if l == nil || l.Storage == nil || l.Transport == nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "no lane to run on",
			Hint: "pass a lane from memlane.New, awslane.FromEnv or lane.New",
		}
	}
	given := *options
	given.Tasks = withHostTasks(ctx, options.Tasks)
	given.Handlers = withHostHandlers(ctx, options.Handlers)
	given.Schedules = withHostSchedules(ctx, options.Schedules)
	options = &given
	rt := newRuntime(l, options)
	rt.admitter, _ = lane.As[lane.Admitter](l.Storage)
	rt.metrics = gauges{withHostMetrics(ctx, options.Metrics)}
	rt.failed = host.Of(ctx).Failed
	rt.hostShows = rt.failed != nil && options.Logger == nil
	if err := rt.validate(options); err != nil {
		return nil, err
	}
	rt.undelayed = rt.queuesWithoutDelay()
	rt.keepApart()
	rt.encode(options.Codec)
	if err := rt.checkScheduledPayloads(ctx); err != nil {
		return nil, err
	}
	if err := l.Start(ctx, lane.StartOptions{Environment: rt.environment, Logger: rt.logger}); err != nil {
		return nil, err
	}
	rt.observe(options.Hooks)
	rt.schedules.OpenedAt = rt.now()
	if !rt.firesBetweenTicks() {
		rt.schedules.WarnOfFine(ctx, tickEvery)
	}
	rt.warnOfIdleKeys(ctx)
	return rt, nil
}

// queuesWithoutDelay returns the bound or known queues that cannot delay, if others can.
func (rt *Runtime) queuesWithoutDelay() (names []runlane.QueueName) {
	if !rt.delays {
		return nil
	}
	all := append(slices.Collect(maps.Keys(rt.queues)), rt.bindings...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name runlane.QueueName) bool {
		return rt.lane.Transport.MaxDelay(name) > 0
	})
}

// observe wraps the storage for hooks and metrics. Without any, commits pay nothing for them.
func (rt *Runtime) observe(hooks []Hook) {
	rt.hooks = newWatchers(hooks, rt.logger)
	if len(hooks) == 0 && rt.metrics.metrics == nil {
		return
	}
	rt.watched = true
	observed := *rt.lane
	observed.Storage = &observedStorage{Storage: rt.lane.Storage, hooks: rt.hooks, metrics: rt.metrics}
	rt.lane = &observed
}

func newRuntime(l *lane.Lane, options *Options) *Runtime {
	environment := options.Environment
	if environment == "" {
		environment = l.Environment
	}
	rt := &Runtime{
		lane:         l,
		environment:  runlane.Environment(environment.Name()),
		handlers:     make(map[runlane.TaskID]runlane.Handler, len(options.Handlers)),
		clientTasks:  make(map[runlane.TaskID]ClientTask),
		queues:       make(map[runlane.QueueName]runlane.Queue),
		bindings:     l.Transport.Queues(),
		logger:       options.Logger,
		maxAbandoned: options.MaxAbandoned,
		keep:         keeping{said: options.Keep},
		coded:        options.Codec != nil,
		middleware:   slices.Clone(options.Middleware),
		tokenKeys:    slices.Clone(options.TokenKeys),
		tracer:       options.Tracer,
		world:        options.World.withDefaults(),
		realTime:     options.World == nil || options.World.Now == nil,
		forceClose:   make(chan struct{}),
		suspects:     make(chan struct{}, 1),
	}
	if rt.logger == nil {
		rt.logger = slog.Default()
	}
	rt.logger = safeLogger(rt.logger)
	rt.schedules = schedule.Scheduler{
		Host:        scheduleHost{rt},
		Environment: rt.environment,
		Logger:      rt.logger,
		Coded:       rt.coded,
	}
	rt.flows = flow.Flows{Host: flowHost{rt}, Environment: rt.environment, Logger: rt.logger, Coded: rt.coded}
	rt.texts.log = !options.HideErrorTexts && options.Codec == nil
	rt.texts.keep = rt.texts.log && l.Storage.Capabilities().ProcessLocalState
	if rt.maxAbandoned == 0 {
		rt.maxAbandoned = runlane.DefaultMaxAbandoned
	}
	rt.delays = l.Transport.Capabilities().NativeDelay
	rt.catalog.settled = map[runlane.TaskID]bool{}
	rt.workerID = newWorkerID(rt.world.NewID)
	return rt
}

// validate registers handlers and queues, and returns all faults at once.
func (rt *Runtime) validate(options *Options) error {
	var faults []error
	if err := rt.environment.Validate(); err != nil {
		faults = append(faults, namedOption("Options.Environment", err))
	}
	if err := checkTokenKeys(options.TokenKeys); err != nil {
		faults = append(faults, err)
	}
	if rt.maxAbandoned < -1 {
		faults = append(
			faults,
			invalidOption(
				"use -1 for no bound, 0 for the default, or a bound",
				"Options.MaxAbandoned is %d",
				rt.maxAbandoned,
			),
		)
	}
	if err := rt.checkKeep(); err != nil {
		faults = append(faults, err)
	}
	if err := rt.boundBodies(options.MaxBodyBytes); err != nil {
		faults = append(faults, err)
	}
	if isNil(options.Codec) { // its constructor failed; never fall back to plain payloads
		faults = append(
			faults,
			invalidOption(
				"leave it nil for no codec, and check the error of its constructor",
				"Options.Codec is a nil pointer",
			),
		)
	}
	for i, m := range rt.middleware {
		if m == nil {
			faults = append(faults, invalidOption("leave it out", "Options.Middleware[%d] is nil", i))
		}
	}
	for i, hook := range options.Hooks {
		if hook == nil {
			faults = append(faults, invalidOption("leave it out", "Options.Hooks[%d] is nil", i))
		}
	}
	for i, h := range options.Handlers {
		faults = append(faults, rt.register(i, h))
	}
	for i, t := range options.Tasks {
		faults = append(faults, rt.registerClientTask(i, t))
	}
	for _, q := range options.Queues {
		faults = append(faults, rt.registerQueue(q))
	}
	for _, s := range options.Schedules {
		faults = append(faults, rt.schedules.Add(s, rt.registerQueue, safeError))
	}
	if c := rt.storage().Capabilities(); len(options.Handlers)+len(options.Tasks) > 0 {
		if !c.LeasesRuns {
			faults = append(faults, unsupported("the storage cannot lease runs, so nothing could execute"))
		}
		if !c.PersistsOutbox {
			faults = append(faults, unsupported("the storage keeps no outbox, so no wakeup would be sent"))
		}
	}
	err := errors.Join(faults...)
	if err == nil {
		return nil
	}
	messages, hints := describe(faults)
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: "the runtime cannot open: " + messages,
		Hint:    hints,
		Cause:   err,
	}
}

func (rt *Runtime) register(i int, h runlane.Handler) error {
	if h.Task == nil {
		return invalidOption("build handlers with Task.Handle", "Options.Handlers[%d] has no task", i)
	}
	if err := h.Task.Err(); err != nil {
		return err
	}
	var faults []error
	if h.Execute == nil {
		faults = append(
			faults,
			invalidOption(
				"build handlers with Task.Handle, and give it a function that is not nil",
				"Options.Handlers: the handler of task %q has no function",
				h.Task.ID,
			),
		)
	}
	if _, twice := rt.handlers[h.Task.ID]; twice {
		return errors.Join(append(
			faults,
			invalidOption("pass one of them", "Options.Handlers: task %q has two handlers", h.Task.ID),
		)...)
	}
	rt.handlers[h.Task.ID] = h
	rt.define(h.Task)
	return errors.Join(append(faults, rt.registerQueue(h.Task.Queue))...)
}

// Environment is the environment that this runtime reads and writes. It is never "".
func (rt *Runtime) Environment() runlane.Environment { return rt.environment }

// Lane returns the lane of this runtime, for programs that need an optional ability through lane.As. The runtime still
// owns it. Its storage is the runtime's view, wrapped for example by a codec; lane.As finds the storage behind it.
func (rt *Runtime) Lane() *lane.Lane { return rt.lane }

// Definitions returns the tasks that execute here or that clients claim here, by id.
func (rt *Runtime) Definitions() []*runlane.Definition { return slices.Clone(rt.definitions) }

// CallJSON creates a call of one of the Definitions, for command lines and HTTP endpoints. The task's key functions
// apply, see runlane.NewRawCall. An unknown task is runlane.ErrTaskNotFound. The trigger reports a payload that is not
// JSON or gives no key.
func (rt *Runtime) CallJSON(id runlane.TaskID, payload json.RawMessage) (runlane.Call, error) {
	if h, ok := rt.handlers[id]; ok {
		return runlane.NewRawCall(h.Task, payload), nil
	}
	if t, ok := rt.clientTasks[id]; ok {
		return runlane.NewRawCall(t.Definition, payload), nil
	}
	return runlane.Call{}, taskNotFound(id, "")
}

// Close ends the runtime: it accepts no more calls, stops workers as if their contexts had ended, and waits for calls
// in progress. If ctx ends first, executing attempts are cancelled with runlane.ErrShutdown and released, not failed,
// and Close waits at most a few more seconds. Finally it closes the lane. Closing twice is no error.
func (rt *Runtime) Close(ctx context.Context) error {
	if !rt.gate.close() {
		return nil
	}
	if !rt.gate.wait(ctx) {
		close(rt.forceClose)
		rt.executions.shutDown()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwindTime+commitTime)
		defer cancel()
		rt.gate.wait(last)
	}
	rt.hooks.close(context.WithoutCancel(ctx))
	return rt.lane.Close(context.WithoutCancel(ctx))
}
