package lives

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// modelWorld is the real thing that the model is held against: runtimes over one memory storage, a transport whose messages arrive
// when a step says so, and a handler that does what a step says.
type modelWorld struct {
	storage     *modelStorage
	transport   *modelTransport
	deployments []*modelDeployment
	random      uint64 // what every runtime's World.Rand returns
	// maxAbandoned is how many attempts of a run may end without an outcome.
	maxAbandoned int
	over         chan struct{}

	mu   sync.Mutex
	ids  int
	next *modelAttempt // what the next call of a handler is to do; nil succeeds
	busy chan struct{} // closed when the step in progress lets handlers return whose contexts ended; nil: they may
}

const (
	modelOwner = "worker-1"
	// modelOtherWorker is a worker whose name the runtime chooses.
	modelOtherWorker = "other"
)

// modelDeployment is one version of the program. Older ones may still have attempts in progress.
type modelDeployment struct {
	rt      *core.Runtime
	tasks   map[runlane.TaskID]*runlane.Task[payload]
	limit   int
	changed bool // the schedule's second definition
	opened  time.Time

	sawPause time.Time // when it looked at the schedule and found it paused
}

func newModelWorld() *modelWorld {
	w := &modelWorld{over: make(chan struct{}), transport: &modelTransport{}}
	w.storage = &modelStorage{Storage: memlane.NewStorage(nil), dead: map[string]bool{}, mute: map[string]bool{}}
	w.storage.transport = w.transport
	return w
}

func (w *modelWorld) options() *core.Options {
	return &core.Options{
		Logger: slog.New(slog.DiscardHandler), MaxAbandoned: w.maxAbandoned,
		World: &core.World{Rand: func() uint64 { return w.random }, NewID: w.newID},
	}
}

func (w *modelWorld) newID(prefix string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("%s%08d", prefix, w.ids)
}

func (w *modelWorld) open(options *core.Options) *core.Runtime {
	l, err := lane.New(w.storage, w.transport, nil)
	if err != nil {
		panic(err)
	}
	rt, err := core.Open(context.Background(), l, options)
	if err != nil {
		panic(err)
	}
	return rt
}

// deploy opens a runtime with another limit, or another definition of the schedule.
func (w *modelWorld) deploy(limit int, changed bool, schedule *modelScheduleKind) *modelDeployment {
	d := &modelDeployment{tasks: virtualDefinitions()[limit], limit: limit, changed: changed}
	options := w.options()
	for _, task := range tasks {
		if !task.strange {
			options.Handlers = append(options.Handlers, d.tasks[task.id].Handle(w.handle))
		}
	}
	if schedule != nil {
		options.Schedules = []runlane.Schedule{schedule.define(d)}
	}
	d.rt, d.opened = w.open(options), runlane.UTCMillis(time.Now())
	w.deployments = append(w.deployments, d)
	return d
}

// close ends whatever still runs.
func (w *modelWorld) close() {
	close(w.over)
	for _, d := range w.deployments {
		_ = d.rt.Close(context.Background())
	}
	synctest.Wait()
}

// modelAttempt is one execution: what it is to do, and its outcome.
type modelAttempt struct {
	outcome  outcome
	waits    bool      // for a step to say the outcome
	stubborn bool      // ignores the end of its context
	lingers  time.Time // of one that was left behind on a shutdown: until when its lease would have lasted
	muted    bool      // its heartbeats do not get through
	decision chan outcome
	cancel   context.CancelFunc

	run         runlane.RunID
	begun       bool
	returnedAt  time.Time // the handler, if it did
	cause       error     // of its context, when it returned
	child       *runlane.TriggerResult
	childErr    error
	childOption *runlane.TriggerOptions

	finished   bool
	finishedAt time.Time
	result     *core.DeliveryResult
	err        error

	model modelLease
}

func (w *modelWorld) prepare(x *modelAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = x
}

// begin keeps handlers whose contexts end from returning until over is called: else they would race the rest of the step.
func (w *modelWorld) begin() (over func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := make(chan struct{})
	w.busy = busy
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy = nil
		close(busy)
	}
}

// pause waits for the end of the step in progress.
func (w *modelWorld) pause() {
	w.mu.Lock()
	busy := w.busy
	w.mu.Unlock()
	if busy != nil {
		<-busy
	}
}

func (w *modelWorld) handle(ctx context.Context, a *runlane.Attempt, _ payload) error {
	w.mu.Lock()
	x := w.next
	w.next = nil
	w.mu.Unlock()
	if x == nil {
		return nil
	}
	x.run, x.begun = a.Run.ID, true
	if x.muted {
		w.storage.silence(w.storage.mute, a.Run.Lease.Token)
	}
	if x.waits {
		ended := ctx.Done()
		if x.stubborn {
			ended = nil
		}
		select {
		case x.outcome = <-x.decision:
		case <-ended:
			w.pause()
			x.outcome = outcome{kind: stops}
		case <-w.over:
			return nil
		}
	}
	x.returnedAt, x.cause = time.Now(), context.Cause(ctx)
	return w.act(ctx, a, x)
}

// act is the end of a handler.
func (w *modelWorld) act(ctx context.Context, a *runlane.Attempt, x *modelAttempt) error {
	switch x.outcome.kind {
	case outputs:
		return a.SetOutput(json.RawMessage(modelOutput))
	case triggers:
		call := w.deployments[0].tasks["once"].With(payload{N: 77})
		x.child, x.childErr = a.Trigger(context.WithoutCancel(ctx), call, x.childOption)
		return nil
	case failsCode:
		return &runlane.Error{Code: modelCode, Message: "declined", Retryable: true}
	case kills:
		w.storage.silence(w.storage.dead, a.Run.Lease.Token)
	}
	return x.outcome.returns(ctx)
}

// execute runs one wakeup to its end.
func (w *modelWorld) execute(d *modelDeployment, wakeup lane.Wakeup, options *core.DeliveryOptions, x *modelAttempt) {
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	w.prepare(x)
	defer w.prepare(nil)
	run := func() {
		x.result, x.err = d.rt.ExecuteDelivery(ctx, wakeup, options)
		x.finishedAt, x.finished = time.Now(), true
		cancel()
	}
	if x.waits {
		x.decision = make(chan outcome, 1)
		go run() // ends with the attempt
	} else {
		run()
	}
	synctest.Wait()
}

// modelStorage is the memory storage, seen by processes some of which are cut off from it.
type modelStorage struct {
	lane.Storage

	transport *modelTransport
	mu        sync.Mutex
	dead      map[string]bool // by lease token: nothing that the owner writes arrives
	mute      map[string]bool // its heartbeats do not
}

// Unwrap makes the storage's own abilities visible.
func (s *modelStorage) Unwrap() lane.Storage { return s.Storage }

func (s *modelStorage) silence(set map[string]bool, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set[token] = true
}

func (s *modelStorage) silent(set map[string]bool, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return set[token]
}

func (s *modelStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.LeaseToken != "" && s.silent(s.dead, c.LeaseToken) {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "this process is dead"}
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

func (s *modelStorage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if s.silent(s.mute, c.Projected.Lease.Token) {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "cut off", Retryable: true}
	}
	return s.Storage.HeartbeatRunLease(ctx, c)
}

// A publisher that dies after sending records nothing.
func (s *modelStorage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	if s.transport.mode() == modeUnmarked {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "this process is dead"}
	}
	return s.Storage.MarkOutboxMessagesPublished(ctx, c)
}
