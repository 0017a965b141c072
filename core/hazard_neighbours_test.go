package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// twoQueues are those of one environment: a deployment took away the queue "lost", and "healthy" is still there.
type twoQueues struct {
	*testing.T
	storage   lane.Storage
	before    *core.Runtime // of the deployment that had both
	after     *core.Runtime
	transport *memlane.Transport // of after
	logs      strings.Builder
	logging   sync.Mutex
}

const (
	lostQueue    runlane.QueueName = "lost"
	healthyQueue runlane.QueueName = "healthy"
)

// newTwoQueues is for a bubble of synctest: its clock is the runtimes'.
func newTwoQueues(t *testing.T) *twoQueues {
	t.Helper()
	n := &twoQueues{T: t, storage: memlane.NewStorage(nil)}
	n.before, _ = n.open(lostQueue, healthyQueue)
	n.after, n.transport = n.open(healthyQueue)
	return n
}

func (n *twoQueues) open(queues ...runlane.QueueName) (*core.Runtime, *memlane.Transport) {
	n.Helper()
	transport := memlane.NewTransport(&memlane.TransportOptions{Queues: queues})
	task := runlane.NewTask[int]("hazard.healthy", &runlane.TaskOptions[int]{Queue: runlane.Queue{Name: healthyQueue}})
	return openQuiet(n.T, newLane(n, n.storage, transport), core.Options{Logger: slog.New(slog.NewTextHandler(n, nil))},
		task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil })), transport
}

func (n *twoQueues) Write(line []byte) (int, error) {
	n.logging.Lock()
	defer n.logging.Unlock()
	return n.logs.Write(line)
}

// trigger makes runs whose wakeups were not sent.
func (n *twoQueues) trigger(count int, queue runlane.QueueName, delay time.Duration) {
	n.Helper()
	task := runlane.NewTask[int]("hazard."+runlane.TaskID(queue), &runlane.TaskOptions[int]{Queue: runlane.Queue{Name: queue}})
	for range count {
		if _, err := n.before.Trigger(n.Context(), task.With(1), &runlane.TriggerOptions{Deferred: true, Delay: delay}); err != nil {
			n.Fatal(err)
		}
	}
}

// woken counts the wakeups of the healthy queue.
func (n *twoQueues) woken() int {
	n.Helper()
	visible, _, err := n.transport.Depth(n.Context(), healthyQueue)
	if err != nil {
		n.Fatal(err)
	}
	return visible
}

// tick is one invocation of a minute.
func (n *twoQueues) tick() (*core.TickResult, error) {
	return n.after.Tick(n.Context(), &core.TickOptions{Repeat: true})
}

// A tick in which something fails goes on with what does not: 40 runs of the lost queue fail each few minutes, so that nearly every
// tick has an error, and 5,000 runs of the other queue are due at one moment. The tick after that moment wakes all of them.
func TestHazard56_FailingNeighbours_EndNoTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newTwoQueues(t)
		n.trigger(5000, healthyQueue, 65*time.Minute)
		for i := range 40 {
			n.trigger(1, lostQueue, time.Duration(i+1)*time.Minute)
		}
		failed := 0
		for range 64 {
			time.Sleep(time.Minute)
			if _, err := n.tick(); err != nil {
				failed++
			}
		}
		if failed < 40 {
			t.Fatalf("%d ticks of 64 failed: the lost queue's runs are not tried", failed)
		}
		time.Sleep(time.Minute)
		result, err := n.tick()
		if woken := result.Delivered.Done + result.Flushed.Done; woken != 5000 || n.woken() < woken {
			t.Errorf("the tick woke %d of 5000 runs: %+v", woken, result)
		}
		if !errors.Is(err, runlane.ErrTransportUnavailable) || strings.Count(err.Error(), "no binding") != 1 {
			t.Errorf("the error, of all rounds and each text once, is %v", err)
		}
	})
}

// Rows of the lost queue come first in the order of time and stay, however many they are and whichever process had to publish them: the relay (at
// once) or the tick (at their time). The row behind them is published by the next tick.
func TestHazard56_RowsOfALostQueue_HideNoOtherQueue(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{600, 3000} {
		for _, delay := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(lost, " rows, delay ", delay), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := newTwoQueues(t)
					n.trigger(lost, lostQueue, delay)
					for range 3 + lost/100 { // until all have failed for long
						time.Sleep(time.Minute)
						_, _ = n.tick()
					}
					n.trigger(1, healthyQueue, delay)
					time.Sleep(delay + time.Minute)
					result, err := n.tick()
					if n.woken() != 1 || !errors.Is(err, runlane.ErrTransportUnavailable) {
						t.Errorf("the healthy queue's row is not published: %+v, %v", result, err)
					}
					if failed := result.Delivered.Failed + result.Flushed.Failed; failed > 100 {
						t.Errorf("%d rows of the lost queue were tried: after the first page it should have been left alone", failed)
					}
				})
			})
		}
	}
}

// The lost queue comes back: nothing was given up, and its rows are published within the longest distance of two tries.
func TestHazard56_LostQueueComesBack_ItsRowsArePublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newTwoQueues(t)
		n.trigger(3000, lostQueue, 0)
		for range 20 {
			time.Sleep(time.Minute)
			_, _ = n.tick()
		}
		again, transport := n.open(lostQueue, healthyQueue)
		for range 5 {
			time.Sleep(time.Minute)
			if _, err := again.Tick(t.Context(), &core.TickOptions{Repeat: true}); err != nil {
				t.Error(err)
			}
		}
		if visible, _, err := transport.Depth(t.Context(), lostQueue); visible != 3000 || err != nil {
			t.Errorf("%d of 3000 rows were published, error %v", visible, err)
		}
	})
}

// In an outage nothing gets on: the tick ends after its first round, and what it tries does not grow with what is waiting.
func TestHazard56_Outage_EndsTheTickAfterOneRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newTwoQueues(t)
		n.trigger(3000, lostQueue, 0)
		n.trigger(3000, healthyQueue, 0)
		n.trigger(3000, healthyQueue, time.Minute)
		if err := n.transport.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(time.Minute)
			result, err := n.tick()
			if !errors.Is(err, runlane.ErrTransportUnavailable) || result.More {
				t.Errorf("result is %+v, error %v", result, err)
			}
			if tried := result.Delivered.Failed + result.Flushed.Failed; tried == 0 || tried > 300 {
				t.Errorf("%d rows were tried", tried)
			}
		}
	})
}

// A worker's tick goes on like any other, and says once what failed.
func TestHazard56_WorkersTick_GoesOnBesideFailingNeighbours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newTwoQueues(t)
		n.trigger(40, lostQueue, 0)
		n.trigger(1000, healthyQueue, time.Second)
		time.Sleep(time.Minute)
		stop := startWork(t, n.after, &core.WorkOptions{Concurrency: 1})
		time.Sleep(time.Second)
		stop()
		got, err := n.after.Runs().List(t.Context(), &core.ListOptions{
			RunFilter: core.RunFilter{Queue: healthyQueue, Statuses: []runlane.Status{runlane.StatusScheduled}},
		})
		if err != nil || len(got.Items) != 0 {
			t.Errorf("%d runs or more were not woken, error %v", len(got.Items), err)
		}
		if logged := strings.Count(n.logs.String(), "tick failed in part"); logged != 1 {
			t.Errorf("logged %d times:\n%s", logged, &n.logs)
		}
	})
}

// manyFaults fails each write for another reason.
type manyFaults struct {
	*memlane.Storage

	mu sync.Mutex
	n  int
}

func (s *manyFaults) AppendRunEvents(context.Context, *lane.AppendCommand) (*lane.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return nil, &runlane.Error{Code: runlane.ErrInternal, Message: fmt.Sprint("scripted fault ", s.n)}
}

// A tick keeps a bounded number of errors, and its stages look behind runs whose commits fail, without taking that for progress.
func TestTick_ManyFaults_AreBoundedAndNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := memlane.NewStorage(nil)
		n := &twoQueues{T: t, storage: storage}
		n.before, _ = n.open(healthyQueue)
		n.trigger(700, healthyQueue, time.Minute)
		time.Sleep(2 * time.Minute)
		if _, err := n.before.Tick(t.Context(), &core.TickOptions{Repeat: true}); err != nil { // their rows are published, and none arrives
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		n.storage = &manyFaults{Storage: storage}
		n.after, _ = n.open(healthyQueue)
		result, err := n.tick()
		if result.Delivered.Failed != 700 || result.More {
			t.Errorf("result is %+v", result)
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) != 21 || lines[20] != "680 more errors of other texts" {
			t.Errorf("error is %v", err)
		}
	})
}
