package core_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// oneBinding is a transport with one binding, the default queue's, which carries the wakeups of all queues.
type oneBinding struct{ *memlane.Transport }

func newOneBinding() oneBinding {
	return oneBinding{memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{runlane.DefaultQueue.Name}})}
}

func (oneBinding) Carrier(runlane.QueueName) (runlane.QueueName, bool) {
	return runlane.DefaultQueue.Name, true
}

// PublishWakeups hides the queue from memlane, whose queues are separate, in the carrier of traces.
func (s oneBinding) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	attempts := append([]lane.PublishAttempt(nil), c.Attempts...)
	for i := range attempts {
		attempts[i].TraceCarrier = map[string]string{"queue": string(attempts[i].Queue)}
		attempts[i].Queue = runlane.DefaultQueue.Name
	}
	return s.Transport.PublishWakeups(ctx, &lane.PublishCommand{Attempts: attempts})
}

func (s oneBinding) Receive(
	ctx context.Context, _ []runlane.QueueName, concurrency int, handle func(context.Context, lane.Wakeup) error,
) error {
	return s.Transport.Receive(ctx, []runlane.QueueName{runlane.DefaultQueue.Name}, concurrency, func(ctx context.Context, w lane.Wakeup) error {
		w.Queue = runlane.QueueName(w.TraceCarrier["queue"])
		return handle(ctx, w)
	})
}

func openSharing(t *testing.T, storage lane.Storage, transport lane.Transport, handlers ...runlane.Handler) *core.Runtime {
	t.Helper()
	l, err := lane.New(storage, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: handlers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	return rt
}

// A queue without a binding of its name is bound where the transport carries it.
func TestSharing_AQueueWithoutItsOwnBinding_IsBound(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "reports", Concurrency: 2}})
	rt := openSharing(t, memlane.NewStorage(nil), newOneBinding(), task.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil }))
	trigger(t, rt, task.With(payload{}))
	var bound []core.QueueState
	for _, state := range rt.Queues().List() {
		if state.Queue.Name == "reports" {
			bound = append(bound, state)
		}
	}
	if len(bound) != 1 || !bound[0].Bound || bound[0].Carrier != runlane.DefaultQueue.Name {
		t.Errorf("states are %+v", bound)
	}
}

// Where queues share a binding, a worker gets the wakeups of all. It takes those it has handlers for, unless it was told which queues to
// take work from.
func TestSharing_WorkerTakesWhatItHasHandlersFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		queues []runlane.QueueName // WorkOptions.Queues
		takes  bool
	}{
		"no list of queues":          {nil, true},
		"a list with the queue":      {[]runlane.QueueName{"default", "bulk"}, true},
		"a list without the queue":   {[]runlane.QueueName{"default"}, false},
		"a list of other queues too": {[]runlane.QueueName{"reports", "default"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var executed atomic.Int32
				task := runlane.NewTask[payload]("report", nil) // of the default queue
				rt := openSharing(t, memlane.NewStorage(nil), newOneBinding(), task.Handle(func(context.Context, *runlane.Attempt, payload) error {
					executed.Add(1)
					return nil
				}))
				result, err := rt.Trigger(t.Context(), task.With(payload{}), &runlane.TriggerOptions{Queue: runlane.Queue{Name: "bulk"}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- rt.Work(ctx, &core.WorkOptions{Queues: tc.queues, NoTick: true}) }()
				time.Sleep(time.Minute)
				stop()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				want := runlane.StatusQueued
				if tc.takes {
					want = runlane.StatusSucceeded
				}
				if got := status(t, rt, result.Run.ID); got != want || (executed.Load() == 1) != tc.takes {
					t.Errorf("the run is %s after %d executions, want %s", got, executed.Load(), want)
				}
			})
		})
	}
}

// A queue that no binding carries is refused as before.
func TestSharing_AQueueThatNothingCarries_IsRefused(t *testing.T) {
	t.Parallel()
	transport := memlane.NewTransport(&memlane.TransportOptions{Queues: []runlane.QueueName{"emails"}})
	task := runlane.NewTask[payload]("report", nil)
	rt := openSharing(t, memlane.NewStorage(nil), transport)
	if _, err := rt.Trigger(t.Context(), task.With(payload{}), nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error is %v", err)
	}
}

// The queues of other programs' tasks are found by what their ticks have stored.
func TestQueuesInUse_HasTheQueuesOfStoredTasks(t *testing.T) {
	t.Parallel()
	storage := memlane.NewStorage(nil)
	task := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "reports", Concurrency: 2}})
	theirs := openSharing(t, storage, newOneBinding(), task.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil }))
	if _, err := theirs.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ours := openSharing(t, storage, newOneBinding())
	states, err := ours.Queues().InUse(t.Context())
	if err != nil || len(states) != 2 {
		t.Fatal(states, err)
	}
	want := core.QueueState{Queue: runlane.Queue{Name: "reports", Concurrency: 2}, Stored: true, Bound: true, Carrier: "default"}
	want.Queue.DispatchTimeout = states[1].Queue.DispatchTimeout
	if states[0].Queue.Name != "default" || states[1] != want {
		t.Errorf("states are %+v", states)
	}
	if listed := ours.Queues().List(); len(listed) != 1 {
		t.Errorf("without a request there are %+v", listed)
	}
}
