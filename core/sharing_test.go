package core_test

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	return oneBinding{memlane.NewTransport(&memlane.TransportOptions{
		Queues: []runlane.QueueName{runlane.DefaultQueue.Name},
	})}
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
	named := func(ctx context.Context, w lane.Wakeup) error {
		w.Queue = runlane.QueueName(w.TraceCarrier["queue"])
		return handle(ctx, w)
	}
	return s.Transport.Receive(ctx, []runlane.QueueName{runlane.DefaultQueue.Name}, concurrency, named)
}

func noop(context.Context, *runlane.Attempt, payload) error { return nil }

// Where queues share a binding, a worker gets the wakeups of all. It executes those of queues that it knows, and with a
// list only those of the list.
func TestSharing_WorkerTakesWhatItKnows(t *testing.T) {
	t.Parallel()
	bulk := runlane.Queue{Name: "bulk"}
	for name, tc := range map[string]struct {
		known  []runlane.Queue     // Options.Queues
		queues []runlane.QueueName // WorkOptions.Queues
		takes  bool
	}{
		"known":                        {known: []runlane.Queue{bulk}, takes: true},
		"known and listed":             {[]runlane.Queue{bulk}, []runlane.QueueName{"default", "bulk"}, true},
		"known, and others are listed": {[]runlane.Queue{bulk}, []runlane.QueueName{"default"}, false},
		"not known":                    {},
		"not known, but listed":        {queues: []runlane.QueueName{"default", "bulk"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var executed atomic.Int32
				task := runlane.NewTask[payload]("report", nil) // of the default queue
				rt := openQuiet(t, newLane(t, memlane.NewStorage(nil), newOneBinding()), core.Options{Queues: tc.known},
					task.Handle(func(context.Context, *runlane.Attempt, payload) error {
						executed.Add(1)
						return nil
					}))
				result := triggerWith(t, rt, task.With(payload{}), &runlane.TriggerOptions{Queue: bulk})
				stop := startWork(t, rt, &core.WorkOptions{Queues: tc.queues, NoTick: true})
				time.Sleep(time.Minute)
				stop()
				want := runlane.StatusQueued
				if tc.takes {
					want = runlane.StatusSucceeded
				}
				if got := status(t, rt, result.ID); got != want || (executed.Load() == 1) != tc.takes {
					t.Errorf("the run is %s after %d executions, want %s", got, executed.Load(), want)
				}
			})
		})
	}
}

// delaying is such a transport that also delays wakeups.
type delaying struct{ oneBinding }

func (delaying) MaxDelay(runlane.QueueName) time.Duration { return 15 * time.Minute }

func (s delaying) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	wakeups = slices.Clone(wakeups)
	for i := range wakeups {
		wakeups[i].TraceCarrier = map[string]string{"queue": string(wakeups[i].Queue)}
		wakeups[i].Queue = runlane.DefaultQueue.Name
	}
	return s.Transport.SendWakeups(ctx, wakeups)
}

// While a deployment that puts a task into a bounded queue replaces one that had it in the default queue, both read the
// same binding. The older one has the handler and does not know the limit: it must neither execute these runs nor wake
// those that wait for a slot, whichever of the two ticks.
func TestHazard57_DeploymentBeforeABoundedQueue_DoesNotGetRoundItsLimit(t *testing.T) {
	t.Parallel()
	for name, olderTicks := range map[string]bool{"only the newer one ticks": false, "only the older one ticks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				execute := func(ctx context.Context, a *runlane.Attempt, _ payload) error {
					n := running.Add(1)
					defer running.Add(-1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					if err := rest(ctx, 20*time.Second); err != nil {
						return err
					}
					if a.Number == 1 {
						return errors.New("the first attempt fails")
					}
					return nil
				}
				retry := runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(5 * time.Second)}
				before := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{Retry: retry})
				after := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{
					Retry: retry, Queue: runlane.Queue{Name: "reports", Concurrency: 1},
				})
				storage, transport := memlane.NewStorage(nil), delaying{newOneBinding()}
				newer := openOn(t, storage, transport, after.Handle(execute))
				older := openOn(t, storage, transport, before.Handle(execute))
				time.Sleep(time.Second)
				const runs = 6
				for range runs {
					trigger(t, newer, after.With(payload{}))
				}
				work := func(rt *core.Runtime, noTick bool, d time.Duration) {
					ctx, stop := context.WithTimeout(t.Context(), d)
					defer stop()
					if err := rt.Work(ctx, &core.WorkOptions{NoTick: noTick}); err != nil {
						t.Error(err)
					}
				}
				var both sync.WaitGroup
				both.Go(func() { work(older, !olderTicks, 20*time.Minute) })
				for range 20 {
					time.Sleep(time.Minute)
					if !olderTicks {
						if _, err := newer.Tick(t.Context(), nil); err != nil {
							t.Error(err)
						}
					}
				}
				both.Wait()
				if most.Load() != 0 {
					t.Errorf("the older one executed %d runs at once", most.Load())
				}
				work(newer, false, 2*time.Hour)
				page, err := newer.Runs().List(t.Context(), &core.ListOptions{
					RunFilter: core.RunFilter{Queue: "reports"},
				})
				if err != nil {
					t.Fatal(err)
				}
				succeeded := 0
				for i := range page.Items {
					if page.Items[i].Status == runlane.StatusSucceeded {
						succeeded++
					}
				}
				if most.Load() != 1 || succeeded != runs {
					t.Errorf("limit 1: %d executed at once, %d of %d succeeded", most.Load(), succeeded, runs)
				}
			})
		})
	}
}

// sharedByName is a transport with two bindings that are one queue of its provider, as two names of one URL are.
type sharedByName struct{ *memlane.Transport }

func (sharedByName) Carrier(queue runlane.QueueName) (runlane.QueueName, bool) {
	return "alpha", queue == "alpha" || queue == "beta"
}

// The binding that two queues share has the name of one of them. A process that knows only the other gets wakeups of
// both.
func TestHazard57_BindingWithTheNameOfTheUnknownQueue_IsSharedAllTheSame(t *testing.T) {
	t.Parallel()
	storage := memlane.NewStorage(nil)
	transport := sharedByName{memlane.NewTransport(&memlane.TransportOptions{
		Queues: []runlane.QueueName{"alpha", "beta"},
	})}
	before := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "beta"}})
	after := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{
		Queue: runlane.Queue{Name: "alpha", Concurrency: 1},
	})
	newer := openOn(t, storage, transport, after.Handle(noop))
	older := openOn(t, storage, transport, before.Handle(noop))
	run := trigger(t, newer, after.With(payload{}))
	wakeup := lane.Wakeup{
		RunKey:      lane.RunKey{Environment: run.Environment, RunID: run.ID},
		Queue:       run.Queue,
		RequestedAt: run.CreatedAt,
	}
	if _, err := older.ExecuteDelivery(t.Context(), wakeup, nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("the process that does not know the queue: %v", err)
	}
	result, err := newer.ExecuteDelivery(t.Context(), wakeup, nil)
	if err != nil || result.Run.Status != runlane.StatusSucceeded {
		t.Errorf("the process that knows it: %+v %v", result, err)
	}
}

// The queues of other programs' tasks are found by what their ticks have stored.
func TestQueuesInUse_HasTheQueuesOfStoredTasks(t *testing.T) {
	t.Parallel()
	storage := memlane.NewStorage(nil)
	task := runlane.NewTask[payload]("report", &runlane.TaskOptions[payload]{
		Queue: runlane.Queue{Name: "reports", Concurrency: 2},
	})
	theirs := openOn(t, storage, newOneBinding(), task.Handle(noop))
	tick(t, theirs)
	ours := openOn(t, storage, newOneBinding())
	states, err := ours.Queues().InUse(t.Context())
	if err != nil || len(states) != 2 {
		t.Fatal(states, err)
	}
	want := core.QueueState{
		Queue:   runlane.Queue{Name: "reports", Concurrency: 2},
		Stored:  true,
		Bound:   true,
		Carrier: "default",
	}
	want.Queue.DispatchTimeout = states[1].Queue.DispatchTimeout
	if states[0].Queue.Name != "default" || states[1] != want {
		t.Errorf("states are %+v", states)
	}
	if listed := ours.Queues().List(); len(listed) != 1 {
		t.Errorf("without a request there are %+v", listed)
	}
}
