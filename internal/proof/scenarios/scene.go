package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// scene is one scenario's stage: a runtime over the storage under test, a transport and a clock in the scenario's
// hands.
type scene struct {
	*testing.T
	lane      *lane.Lane
	storage   *scriptedStorage
	transport *ScriptedTransport
	clock     *Clock
	logs      *logBuffer
	options   core.Options
	rt        *caller
	waits     *sync.Map              // core.Wait that were explained; nil: they are not collected
	faults    *sceneFaults           // nil: nothing goes wrong on purpose
	known     map[runlane.RunID]bool // runs whose wakeups were expected already, under faults
}

// newScene opens a runtime with the handlers.
func newScene(t *testing.T, h Harness, handlers ...runlane.Handler) *scene {
	t.Helper()
	return openScene(t, h, core.Options{Handlers: handlers}, nil)
}

// openScene opens a runtime with options; change may prepare the scene before that.
func openScene(t *testing.T, h Harness, options core.Options, change func(*scene)) *scene {
	t.Helper()
	base := h.NewLane(t)
	s := &scene{
		T:         t,
		storage:   &scriptedStorage{Storage: base.Storage},
		transport: NewScriptedTransport(),
		clock:     NewClock(time.Now()),
		logs:      &logBuffer{},
		options:   options,
		faults:    h.faults,
		waits:     h.waits,
		known:     map[runlane.RunID]bool{},
	}
	if change != nil {
		change(s)
	}
	s.clock.passed = h.passed(t)
	s.faults.leave(s.storage.scripts, s.transport.scripts)
	l, err := lane.New(s.faults.storage(s.storage), s.faults.transport(s.transport), nil)
	s.must(err)
	s.lane = l
	if s.options.Environment == "" {
		s.options.Environment = newEnvironment()
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.NewJSONHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if s.options.World == nil {
		s.options.World = &core.World{Now: s.clock.Now}
	}
	s.rt = s.open(l)
	return s
}

// open opens a runtime of this scene's options on a lane and closes it at the end.
func (s *scene) open(l *lane.Lane) *caller {
	s.Helper()
	rt, err := core.Open(s.Context(), l, &s.options)
	s.must(err)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return s.caller(rt)
}

// lent is the scene's storage for another runtime: the first one starts and closes it.
func (s *scene) lent() lane.Storage { return borrowed{s.faults.storage(s.storage)} }

// second is another process on the same storage, with its own transport.
func (s *scene) second() (*caller, *ScriptedTransport) {
	s.Helper()
	transport := NewScriptedTransport()
	l, err := lane.New(s.lent(), s.faults.transport(transport), nil)
	s.must(err)
	return s.open(l), transport
}

// borrowed is a storage that another lane starts and closes.
type borrowed struct{ lane.Storage }

func (b borrowed) Unwrap() lane.Storage          { return b.Storage }
func (borrowed) Start(context.Context) error     { return nil }
func (borrowed) Close(ctx context.Context) error { return nil }

func newEnvironment() runlane.Environment {
	return runlane.Environment(fmt.Sprintf("scenario-%x", rand.Uint64())) // a name, not a choice: nothing depends on it
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// trigger makes a run.
func (s *scene) trigger(call runlane.Call, options *runlane.TriggerOptions) *runlane.Run {
	s.Helper()
	result, err := s.rt.Trigger(s.Context(), call, options)
	s.must(err)
	if result.Outcome != runlane.TriggerCreated {
		s.Fatalf("outcome is %q, want %q", result.Outcome, runlane.TriggerCreated)
	}
	return result.Run
}

func (s *scene) wakeup(run *runlane.Run) lane.Wakeup {
	return lane.Wakeup{RunKey: s.key(run.ID), Queue: run.Queue, RequestedAt: s.clock.Now()}
}

func (s *scene) key(id runlane.RunID) lane.RunKey {
	return lane.RunKey{Environment: s.rt.Environment(), RunID: id}
}

// deliver hands the run's wakeup to the runtime; twice where wakeups come twice.
func (s *scene) deliver(run *runlane.Run) *core.DeliveryResult {
	s.Helper()
	result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.must(err)
	s.deliverAgain(run)
	return result
}

// execute delivers the run, expects that an attempt was executed and returns the run after it.
func (s *scene) execute(run *runlane.Run) *runlane.Run {
	s.Helper()
	result := s.deliver(run)
	if result.Ignored != "" {
		s.Fatalf("delivery was ignored as %q", result.Ignored)
	}
	s.sameAsStored(result.Run)
	return result.Run
}

// ignored delivers the run and expects that nothing was executed, for the reason.
func (s *scene) ignored(run *runlane.Run, want core.Ignored) *runlane.Run {
	s.Helper()
	result := s.deliver(run)
	if result.Ignored != want {
		s.Fatalf("delivery was ignored as %q, want %q", result.Ignored, want)
	}
	return result.Run
}

func (s *scene) get(id runlane.RunID) *runlane.Run {
	s.Helper()
	run, err := s.rt.Runs().Get(s.Context(), id)
	s.must(err)
	return run
}

// sameAsStored compares what the runtime returned with what the storage has.
func (s *scene) sameAsStored(run *runlane.Run) {
	s.Helper()
	stored := s.get(run.ID)
	if stored.Status != run.Status || stored.EventSequence != run.EventSequence || stored.Counters != run.Counters ||
		!bytes.Equal(stored.Output, run.Output) || stored.Failure.Code != run.Failure.Code ||
		!stored.RunAt.Equal(run.RunAt) {
		s.Fatalf("runtime returned %+v, storage has %+v", run, stored)
	}
}

func (s *scene) history(id runlane.RunID) []runlane.EventRecord {
	s.Helper()
	var records []runlane.EventRecord
	for record, err := range s.rt.Runs().Events(s.Context(), id, nil) {
		s.must(err)
		records = append(records, record)
	}
	return records
}

// wantHistory compares the types of a run's events, without "run.", separated by spaces.
func (s *scene) wantHistory(id runlane.RunID, want string) {
	s.Helper()
	var types []string
	for _, record := range s.history(id) {
		types = append(types, strings.TrimPrefix(string(record.Type()), "run."))
	}
	if got := strings.Join(types, " "); got != want {
		s.Fatalf("history is\n  %s\nwant\n  %s", got, want)
	}
}

func (s *scene) wantStatus(run *runlane.Run, want runlane.Status) {
	s.Helper()
	if run.Status != want {
		s.Fatalf("run is %s (failure %+v), want %s", run.Status, run.Failure, want)
	}
}

func (s *scene) wantCode(err error, want runlane.ErrorCode) *runlane.Error {
	s.Helper()
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != want {
		s.Fatalf("error is %v, want code %s", err, want)
	}
	return e
}

// tick ticks once and expects no error.
func (s *scene) tick() *core.TickResult {
	s.Helper()
	result, err := s.rt.Tick(s.Context(), nil)
	s.must(err)
	return result
}

// change appends events to a run as another process would.
func (s *scene) change(id runlane.RunID, bodies ...runlane.EventBody) *runlane.Run {
	s.Helper()
	run := s.get(id)
	var events []runlane.Event
	for _, body := range bodies {
		events = append(events, runlane.Event{
			RunID:       id,
			Environment: s.rt.Environment(),
			OccurredAt:  runlane.UTCMillis(s.clock.Now()),
			Actor:       runlane.OperatorActor,
			Body:        body,
		})
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	s.must(err)
	_, err = s.storage.Storage.AppendRunEvents(s.Context(), &lane.AppendCommand{Transition: lane.Transition{
		ExpectedSequence: run.EventSequence, Events: events, Projected: projected, Queue: s.policy(run.Queue),
	}})
	s.must(err)
	return projected
}

// policy is the queue as the scene's handlers name it.
func (s *scene) policy(name runlane.QueueName) runlane.Queue {
	for _, h := range s.options.Handlers {
		if h.Task.Queue.Name == name {
			return h.Task.Queue
		}
	}
	return runlane.Queue{Name: name}
}

// die claims and starts the run for a process that is never heard of again. Its lease ends a minute later.
func (s *scene) die(id runlane.RunID) {
	s.Helper()
	run, at := s.get(id), runlane.UTCMillis(s.clock.Now())
	lease := runlane.Lease{
		Token:     fmt.Sprintf("dead-%x", rand.Uint64()),
		WorkerID:  "dead",
		ExpiresAt: at.Add(time.Minute),
	}
	header := runlane.Event{
		RunID:       id,
		Environment: s.rt.Environment(),
		OccurredAt:  at,
		Actor:       runlane.Actor{Type: runlane.ActorWorker, ID: "dead"},
	}
	events := []runlane.Event{header, header}
	events[0].Body, events[1].Body = &runlane.RunLeaseClaimed{
		Lease: lease,
	}, &runlane.RunStarted{Attempt: run.Counters.Attempts + 1}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	s.must(err)
	queue := s.policy(run.Queue)
	got, err := s.storage.Storage.ClaimRunLease(s.Context(), &lane.ClaimCommand{
		At:       at,
		ByWakeup: true,
		Slot:     queue.Bounded(),
		Transition: lane.Transition{
			ExpectedSequence: run.EventSequence, Events: events, Projected: projected, Queue: queue,
		},
	})
	s.must(err)
	if got.Outcome != lane.Acquired {
		s.Fatalf("claim lost: %s", got.Outcome)
	}
}

// until waits for a condition that other goroutines bring about.
func (s *scene) until(what string, condition func() bool) {
	s.Helper()
	pause, limit := s.faults.pause()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	check := time.NewTicker(pause)
	defer check.Stop()
	for !condition() {
		select {
		case <-check.C:
			if s.faults != nil && s.faults.plan != nil { // what went wrong is tried again when its time has come
				s.clock.Advance(pause)
			}
		case <-ctx.Done():
			s.Fatalf("waited too long: %s", what)
		}
	}
}
