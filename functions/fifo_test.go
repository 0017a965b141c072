package functions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

// invocationTime is the template's.
const invocationTime = time.Minute

// work is the payload of the tasks below: how long the handler takes.
type work struct {
	Name  string
	Takes time.Duration
}

// fifoWorld is a program whose wakeups go through a FIFO queue and a mapping as of the template, in virtual time. No process ticks.
type fifoWorld struct {
	*core.Runtime

	queue *fifoQueue
	task  *runlane.Task[work]
	log   bytes.Buffer // of the runtime; read it while nothing runs

	mu    sync.Mutex
	ended []string // names in the order in which handlers finished their work
	tries map[string]int
}

// onFIFO opens the program; its handler takes its time and ends early with its context, as a polite one does.
func onFIFO(t *testing.T, options *runlane.TaskOptions[work]) *fifoWorld {
	t.Helper()
	return onFIFOWith(t, options, memlane.NewStorage(nil))
}

func onFIFOWith(t *testing.T, options *runlane.TaskOptions[work], storage lane.Storage) *fifoWorld {
	t.Helper()
	w := &fifoWorld{
		queue: &fifoQueue{visibility: infra.VisibilityFactor * invocationTime, most: infra.MaxFIFOReceiveCount},
		task:  runlane.NewTask("work", options), tries: map[string]int{},
	}
	url := "https://sqs.eu-west-1.amazonaws.com/123456789012/work.fifo"
	quiet := slog.New(slog.DiscardHandler)
	transport, err := sqstransport.New(w.queue, map[runlane.QueueName]string{"default": url}, &sqstransport.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	w.Runtime = openOn(t, storage, transport, &core.Options{Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Handlers: []runlane.Handler{
		w.task.Handle(func(ctx context.Context, _ *runlane.Attempt, job work) error {
			w.mu.Lock()
			w.tries[job.Name]++
			w.mu.Unlock()
			select {
			case <-time.After(job.Takes):
			case <-ctx.Done():
				return ctx.Err()
			}
			w.mu.Lock()
			w.ended = append(w.ended, job.Name)
			w.mu.Unlock()
			return nil
		}),
	}})
	ctx, stop := context.WithCancel(t.Context())
	var mapping sync.WaitGroup
	mapping.Go(func() {
		err := eventsource.Queue(ctx, w.queue, url, &eventsource.QueueOptions{Timeout: invocationTime, Logger: quiet}, functions.Bridge(w.Runtime))
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		mapping.Wait()
	})
	return w
}

// settle lets virtual time pass, and what became due in it end.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// burst triggers the jobs of a group at once.
func (w *fifoWorld) burst(t *testing.T, group string, jobs ...work) (ids []runlane.RunID) {
	t.Helper()
	for _, job := range jobs {
		result, err := w.Trigger(t.Context(), w.task.With(job), &runlane.TriggerOptions{ConcurrencyKey: group})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, result.Run.ID)
	}
	return ids
}

// A burst of ten of one group, and one of them fits into an invocation: all execute, in order, at the first try, and none is given up.
func TestFIFO_TenOfWhichOneFits_AllExecuteInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options *runlane.TaskOptions[work]
		takes   time.Duration
		within  time.Duration
	}{
		"without a timeout":             {nil, 40 * time.Second, 7 * time.Minute},
		"two would fit, by luck":        {nil, 25 * time.Second, 5 * time.Minute},
		"a timeout that fits once":      {&runlane.TaskOptions[work]{Timeout: 50 * time.Second}, 45 * time.Second, 8 * time.Minute},
		"a timeout that fits again":     {&runlane.TaskOptions[work]{Timeout: 20 * time.Second}, 19 * time.Second, 4 * time.Minute},
		"nearly an invocation each":     {nil, 56 * time.Second, 10 * time.Minute},
		"the longest timeout that fits": {&runlane.TaskOptions[work]{Timeout: core.LongestTimeout(invocationTime)}, 55 * time.Second, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := onFIFO(t, c.options)
				var jobs []work
				var want []string
				for i := range 10 {
					jobs = append(jobs, work{fmt.Sprint(i), c.takes})
					want = append(want, fmt.Sprint(i))
				}
				ids := w.burst(t, "one group", jobs...)
				settle(c.within)
				equal(t, "executed", w.ended, want)
				equal(t, "dead letters", len(w.queue.dead), 0)
				for i, id := range ids {
					run, err := w.Runs().Get(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					if run.Status != runlane.StatusSucceeded || run.Counters.Failures != 0 || w.tries[want[i]] != 1 {
						t.Errorf("run %d is %s after %d tries with %+v", i, run.Status, w.tries[want[i]], run.Counters)
					}
				}
				if w.queue.receipts > 10 {
					t.Errorf("a wakeup was received %d times", w.queue.receipts)
				}
			})
		})
	}
}

// One that takes longer than any invocation has all of one, fails for that, and costs those behind it nothing but time.
func TestFIFO_OneThatNeverFits_FailsAloneAfterItsWholeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onFIFO(t, nil)
		ids := w.burst(t, "one group", work{"short", 10 * time.Second}, work{"endless", time.Hour}, work{"behind", time.Second})
		settle(5 * time.Minute)
		equal(t, "executed", w.ended, []string{"short", "behind"})
		run, err := w.Runs().Get(t.Context(), ids[1])
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrTaskTimedOut || run.FinishedAt.Sub(run.StartedAt) < 50*time.Second {
			t.Errorf("the endless one is %s with %+v after %s", run.Status, run.Failure, run.FinishedAt.Sub(run.StartedAt))
		}
	})
}

// Groups of any size with jobs of any length that an invocation has time for: each group executes whole and in order, and nothing fails.
func TestFIFO_GroupsOfAnyLength_ExecuteWholeAndInOrder(t *testing.T) {
	t.Parallel()
	for range 10 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0)) // a test's
				var options runlane.TaskOptions[work]
				longest := core.LongestTimeout(invocationTime) * 9 / 10
				if random.IntN(2) == 0 {
					options.Timeout = time.Duration(5+random.IntN(50)) * time.Second
					longest = options.Timeout - time.Second
				}
				w := onFIFO(t, &options)
				var ids []runlane.RunID
				total := 0
				for group := range 1 + random.IntN(4) {
					var jobs []work
					for i := range 1 + random.IntN(25) {
						jobs = append(jobs, work{fmt.Sprintf("%d-%02d", group, i), time.Duration(random.Int64N(int64(longest)))})
					}
					ids = append(ids, w.burst(t, fmt.Sprint("group ", group), jobs...)...)
					total += len(jobs)
				}
				for end := time.Now().Add(6 * time.Hour); !w.queue.empty() && time.Now().Before(end); {
					settle(time.Minute)
				}
				equal(t, "executed", len(w.ended), total)
				equal(t, "dead letters", len(w.queue.dead), 0)
				for group := range 4 {
					own := slices.DeleteFunc(slices.Clone(w.ended), func(name string) bool { return name[:1] != fmt.Sprint(group) })
					if !slices.IsSorted(own) {
						t.Errorf("group %d executed as %v", group, own)
					}
				}
				for _, id := range ids {
					run, err := w.Runs().Get(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					if run.Status != runlane.StatusSucceeded || run.Counters.Failures != 0 {
						t.Errorf("run is %s with %+v", run.Status, run.Counters)
					}
				}
			})
		})
	}
}

// slowClaims lets the first claims take their time, as a storage does that is throttled.
type slowClaims struct {
	lane.Storage

	slow  atomic.Int64 // how many
	takes time.Duration
}

func (s *slowClaims) Unwrap() lane.Storage { return s.Storage }

func (s *slowClaims) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if s.slow.Add(-1) >= 0 {
		time.Sleep(s.takes)
	}
	return s.Storage.ClaimRunLease(ctx, c)
}

// The time went after the handler was let in: its attempt is ended before its due time, released, and no try is counted.
func TestBridge_AttemptThatHadLessThanItsTime_IsReleased(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options runlane.TaskOptions[work]
		back    error // what the handler returns at its end
		status  runlane.Status
	}{
		"a timeout":               {runlane.TaskOptions[work]{Timeout: 50 * time.Second}, nil, runlane.StatusReleased},
		"no timeout":              {runlane.TaskOptions[work]{}, nil, runlane.StatusReleased},
		"its own error":           {runlane.TaskOptions[work]{}, errors.New("connection closed"), runlane.StatusReleased},
		"a permanent one":         {runlane.TaskOptions[work]{}, runlane.Permanent(errors.New("never")), runlane.StatusFailed},
		"its whole time, in fact": {runlane.TaskOptions[work]{Timeout: 40 * time.Second}, nil, runlane.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				task := runlane.NewTask("work", &c.options)
				var cause error
				storage := &slowClaims{Storage: memlane.NewStorage(nil), takes: 12 * time.Second}
				storage.slow.Store(1)
				rt := openOn(t, storage, memlane.NewTransport(nil), &core.Options{Handlers: []runlane.Handler{
					task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ work) error {
						<-ctx.Done()
						cause = context.Cause(ctx)
						if c.back != nil {
							return c.back
						}
						return ctx.Err()
					}),
				}})
				p := &program{Runtime: rt}
				id := p.trigger(t, task.With(work{}))
				equal(t, "failures", invoke(t, p, message("m", wakeup(id), standardARN, 1)), []string{})
				run, err := rt.Runs().Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "status", run.Status, c.status)
				if c.status == runlane.StatusReleased && (run.Counters.Failures != 0 || !errors.Is(cause, runlane.ErrShutdown)) {
					t.Errorf("counters %+v, cause %v", run.Counters, cause)
				}
			})
		})
	}
}

// On a queue that cannot delay, the wakeup of such a run is handed back: it stays before those behind it.
func TestBridge_FIFO_AttemptThatHadLessThanItsTime_ComesAgainBeforeItsGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := &slowClaims{Storage: memlane.NewStorage(nil), takes: 12 * time.Second}
		w := onFIFOWith(t, &runlane.TaskOptions[work]{Timeout: 50 * time.Second}, storage)
		storage.slow.Store(1)
		ids := w.burst(t, "one group", work{"first", 48 * time.Second}, work{"second", time.Second})
		settle(4 * time.Minute)
		equal(t, "executed", w.ended, []string{"first", "second"})
		equal(t, "tries of the first", w.tries["first"], 2)
		run, err := w.Runs().Get(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "failures of the first", run.Counters.Failures, 0)
	})
}

// A task that no invocation has time for is handed back at growing distances, said at ERROR with both numbers, and never claimed.
func TestBridge_TimeoutBeyondAnyInvocation_IsNamedAndHandedBackLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := onFIFO(t, &runlane.TaskOptions[work]{Timeout: 2 * time.Minute})
		id := w.burst(t, "one group", work{"long", time.Second})[0]
		settle(2 * time.Minute)
		run, err := w.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "status", run.Status, runlane.StatusQueued)
		equal(t, "tries", len(w.tries), 0)
		if w.queue.receipts > 5 { // after 0, 10, 30 and 70 seconds
			t.Errorf("received %d times in two minutes", w.queue.receipts)
		}
		for _, want := range []string{"level=ERROR", `task \"work\" has a timeout of 2m`, "an invocation of 1m has 56s"} {
			if !strings.Contains(w.log.String(), want) {
				t.Errorf("the log does not say %q: %s", want, w.log.String())
			}
		}
	})
}
