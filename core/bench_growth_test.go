package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

const (
	// growthCalls are timed of each operation in a round of each world; so many runs go through a worker in a turn.
	growthCalls = 200
	growthRuns  = 1_000
	// growthRounds are measured at least.
	growthRounds = 25
)

// BenchmarkGrowth measures what the runs that a process keeps cost those that it makes: each operation on the embedded lane among so
// many finished runs, or so many that wait for their time, beside the same among few. Calls of the two worlds alternate, so that
// whatever else the machine does meets both; so does the garbage collector, which therefore is no part of a ratio. Runs that a round
// made are removed after it: the worlds stay as large as they are.
//
// A line has the medians over rounds of p50 and p99, the same of the small world (few-), and the median ratio of neighboring rounds
// with its quartiles: 1.1 takes a tenth longer than among few. The lines of 1,000 retained runs compare two equal worlds: what
// their ratios are off 1 is noise. lookup is the yardstick: a lookup in a Go map of as many. run is from trigger to success through a worker, in runs a second and allocations.
//
//	go test -run '^$' -bench '^BenchmarkGrowth$' ./core
//
// -short leaves out the sizes above 10,000.
func BenchmarkGrowth(b *testing.B) {
	for _, kind := range []struct {
		name  string
		few   int
		sizes []int
		lay   func(w *growingWorld, n int)
	}{
		{"retained", 1_000, []int{1_000, 10_000, 100_000, 1_000_000}, (*growingWorld).layFinished},
		{"active", 100, []int{10_000, 100_000}, (*growingWorld).layWaiting},
	} {
		b.Run(kind.name, func(b *testing.B) {
			large, laid := newGrowingWorld(b), 0
			for _, size := range kind.sizes {
				if testing.Short() && size > 10_000 {
					continue
				}
				b.Run(strconv.Itoa(size), func(b *testing.B) {
					few := newGrowingWorld(b)
					kind.lay(few, kind.few)
					kind.lay(large, size-laid)
					laid = size
					runtime.GC()
					for _, o := range growthOperations() {
						b.Run(o.name, func(b *testing.B) { compareGrowth(b, &o, few, large) })
					}
					b.Run("run", func(b *testing.B) { compareRuns(b, few, large) })
				})
			}
		})
	}
}

// growthOperation is a call that is timed. prepare makes what it needs, finish leads what it made to its end.
type growthOperation struct {
	name    string
	prepare func(w *growingWorld) error
	call    func(w *growingWorld, n int) error
	finish  func(w *growingWorld) error
}

func growthOperations() []growthOperation {
	trigger := func(w *growingWorld, _ int) error { return w.trigger() }
	deliver := func(w *growingWorld, n int) error { return w.deliver(w.made[n]) }
	random := func(w *growingWorld, n int) runlane.RunID { return w.sample[(w.explained+n)*7919%len(w.sample)] }
	return []growthOperation{ // those that make runs last: the oldest go for them, and with these the sample
		{name: "list", call: func(w *growingWorld, _ int) error {
			page, err := w.rt.Runs().List(w.b.Context(), nil)
			if err == nil && len(page.Items) != runlane.DefaultPageLimit {
				err = fmt.Errorf("the first page has %d runs", len(page.Items))
			}
			return err
		}},
		{name: "explain", call: func(w *growingWorld, n int) error {
			// A step through the sample that meets all of it, in an order that no cache foresees.
			_, err := w.rt.Runs().Explain(w.b.Context(), random(w, n))
			return err
		}, finish: func(w *growingWorld) error { w.explained += growthCalls; return nil }},
		{name: "lookup", prepare: (*growingWorld).fillBare, call: func(w *growingWorld, n int) error {
			if run := w.bare[random(w, n)]; run == nil || run[0]+run[len(run)-1] != 2 {
				return errors.New("a run is not in the map")
			}
			return nil
		}, finish: func(w *growingWorld) error { w.explained += growthCalls; return nil }},
		{name: "tick", call: func(w *growingWorld, _ int) error {
			result, err := w.rt.Tick(w.b.Context(), nil)
			if err == nil && result.Delivered.Done+result.Redelivered.Done+result.Flushed.Done > 0 {
				err = fmt.Errorf("something was due: %+v", result)
			}
			return err
		}},
		{name: "trigger", call: trigger, finish: func(w *growingWorld) error {
			for n := range w.made {
				if err := deliver(w, n); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "deliver", call: deliver, prepare: func(w *growingWorld) error {
			for range growthCalls {
				if err := w.trigger(); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

// compareGrowth times an operation in two worlds.
func compareGrowth(b *testing.B, o *growthOperation, few, large *growingWorld) {
	b.Helper()
	worlds := [2]*growingWorld{few, large}
	var p50, p99 [2][]float64
	each := func(do func(w *growingWorld) error) {
		for i := range worlds {
			if do == nil {
				continue
			}
			if err := do(worlds[(i+len(p50[0]))%2]); err != nil {
				b.Fatal(err)
			}
		}
	}
	round := func() {
		each(o.prepare)
		var times [2][]time.Duration
		for n := range growthCalls {
			for i := range worlds {
				side := (n + i + len(p50[0])) % 2
				began := time.Now()
				err := o.call(worlds[side], n)
				times[side] = append(times[side], time.Since(began))
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		each(o.finish)
		each(func(w *growingWorld) error { return w.shrink(len(w.made)) })
		for i := range worlds {
			p50[i] = append(p50[i], float64(quantile(times[i], 0.5).Nanoseconds())/1000)
			p99[i] = append(p99[i], float64(quantile(times[i], 0.99).Nanoseconds())/1000)
		}
	}
	for b.Loop() {
		round()
	}
	for len(p50[0]) < growthRounds {
		round()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(middle(p50[0]), "few-p50-µs")
	b.ReportMetric(middle(p99[0]), "few-p99-µs")
	b.ReportMetric(middle(p50[1]), "p50-µs")
	b.ReportMetric(middle(p99[1]), "p99-µs")
	reportRatio(b, "p50-ratio", p50)
	reportRatio(b, "p99-ratio", p99)
}

// compareRuns times whole runs in two worlds, by turns.
func compareRuns(b *testing.B, few, large *growingWorld) {
	b.Helper()
	worlds := [2]*growingWorld{few, large}
	var took, allocations [2][]float64
	turn := func(i int) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		worlds[i].work(growthRuns, 1)
		took[i] = append(took[i], time.Since(began).Seconds()/growthRuns)
		runtime.ReadMemStats(&after)
		allocations[i] = append(allocations[i], float64(after.Mallocs-before.Mallocs)/growthRuns)
		if err := worlds[i].shrink(growthRuns); err != nil {
			b.Fatal(err)
		}
	}
	round := func() {
		first := len(took[0]) % 2
		turn(first)
		turn(1 - first)
	}
	for b.Loop() {
		round()
	}
	for len(took[0]) < growthRounds {
		round()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1/middle(took[0]), "few-runs/s")
	b.ReportMetric(1/middle(took[1]), "runs/s")
	b.ReportMetric(middle(allocations[0]), "few-allocs/run")
	b.ReportMetric(middle(allocations[1]), "allocs/run")
	reportRatio(b, "time-ratio", took)
	reportRatio(b, "allocs-ratio", allocations)
}

// reportRatio reports how many times what the first of a pair took the second did, with its quartiles.
func reportRatio(b *testing.B, unit string, pairs [2][]float64) {
	b.Helper()
	ratios := make([]float64, len(pairs[0]))
	for n := range ratios {
		ratios[n] = pairs[1][n] / pairs[0][n]
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[(len(ratios)-1)/4], unit+"-q1")
	b.ReportMetric(ratios[(len(ratios)-1)/2], unit)
	b.ReportMetric(ratios[(len(ratios)-1)*3/4], unit+"-q3")
}

func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// growingWorld is a storage in memory with two runtimes on it: rt's wakeups go nowhere, because what they ask for is called by hand;
// working's reach a worker.
type growingWorld struct {
	b           *testing.B
	storage     lane.Storage
	rt, working *core.Runtime
	made        []runlane.RunID // in this round
	sample      []runlane.RunID // of what was laid down last
	laid        int
	bare        map[runlane.RunID]*bareRun // the yardstick
	explained   int
	ended       chan struct{} // a run has ended
}

// bareRun is about as large as what the storage keeps of a run.
type bareRun [512]byte

// fillBare fills a map as a program without an engine would have it, with as many runs as were laid down. What a lookup in it takes
// longer among many is what the processor's caches take.
func (w *growingWorld) fillBare() error {
	if w.bare != nil && len(w.bare) >= w.laid {
		return nil
	}
	w.bare = make(map[runlane.RunID]*bareRun, w.laid)
	one := func(id runlane.RunID) {
		run := &bareRun{}
		run[0], run[len(run)-1] = 1, 1
		w.bare[id] = run
	}
	every := max(w.laid/len(w.sample), 1) // the sample lies among the others
	for n := range w.laid {
		if n%every == 0 && n/every < len(w.sample) {
			one(w.sample[n/every])
		} else {
			one(runlane.RunID(fmt.Sprintf("run_bare%022d", n)))
		}
	}
	return nil
}

var growthTask = runlane.NewTask[struct{}]("bench.growth", nil)

// silentTransport accepts every wakeup and forgets it.
type silentTransport struct{ lane.UnimplementedTransport }

func (silentTransport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

func (silentTransport) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, len(c.Attempts)), nil
}

func (silentTransport) MaxDelay(runlane.QueueName) time.Duration { return memlane.DefaultMaxDelay }

func (silentTransport) SendWakeups(_ context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, len(wakeups)), nil
}

func newGrowingWorld(b *testing.B) *growingWorld {
	b.Helper()
	w := &growingWorld{b: b, storage: memlane.NewStorage(nil), ended: make(chan struct{}, 20_000)}
	open := func(transport lane.Transport, handle func()) *core.Runtime {
		l, err := lane.New(w.storage, transport, nil)
		if err != nil {
			b.Fatal(err)
		}
		rt, err := core.Open(b.Context(), l, &core.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handlers: []runlane.Handler{growthTask.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
				handle()
				return nil
			})},
		})
		if err != nil {
			b.Fatal(err)
		}
		return rt
	}
	w.rt = open(silentTransport{}, func() {})
	w.working = open(memlane.NewTransport(nil), func() { w.ended <- struct{}{} })
	b.Cleanup(func() {
		if err := errors.Join(w.rt.Close(context.Background()), w.working.Close(context.Background())); err != nil {
			b.Error(err)
		}
	})
	return w
}

func (w *growingWorld) trigger() error {
	result, err := w.rt.Trigger(w.b.Context(), growthTask.With(struct{}{}), nil)
	if err == nil {
		w.made = append(w.made, result.Run.ID)
	}
	return err
}

func (w *growingWorld) deliver(id runlane.RunID) error {
	result, err := w.rt.ExecuteDelivery(w.b.Context(), lane.Wakeup{
		RunKey: lane.RunKey{Environment: w.rt.Environment(), RunID: id}, Queue: runlane.DefaultQueue.Name,
	}, nil)
	if err == nil && result.Ignored != "" {
		err = fmt.Errorf("%s: %s", id, result.Ignored)
	}
	return err
}

// work takes n runs from trigger to their end, from so many goroutines and through a worker.
func (w *growingWorld) work(n, triggering int) (sample []runlane.RunID) {
	w.b.Helper()
	stop := work(w.b, w.working)
	defer stop()
	sample = w.triggerAll(w.working, n, triggering, nil)
	for range n {
		<-w.ended
	}
	return sample
}

// triggerAll triggers n runs from so many goroutines. The sample is at most a thousand of their ids.
func (w *growingWorld) triggerAll(
	rt *core.Runtime, n, triggering int, options func(n int) *runlane.TriggerOptions,
) (sample []runlane.RunID) {
	w.b.Helper()
	var mu sync.Mutex
	var triggers sync.WaitGroup
	for i := range triggering {
		triggers.Go(func() {
			for k := i; k < n; k += triggering {
				var o *runlane.TriggerOptions
				if options != nil {
					o = options(k)
				}
				result, err := rt.Trigger(w.b.Context(), growthTask.With(struct{}{}), o)
				if err != nil {
					panic(err) // a wait for the ends would not end
				}
				if k%(n/1000+1) == 0 {
					mu.Lock()
					sample = append(sample, result.Run.ID)
					mu.Unlock()
				}
			}
		})
	}
	triggers.Wait()
	return sample
}

// layFinished adds n runs that succeeded. It goes in portions, so that the collector meets what is kept, not what waits.
func (w *growingWorld) layFinished(n int) {
	w.b.Helper()
	w.sample = nil
	w.laid += n
	for n > 0 {
		part := min(n, 20_000)
		w.sample = append(w.sample, w.work(part, 4)...)
		n -= part
	}
}

// layWaiting adds n runs that wait for their time, a day ahead and a millisecond apart.
func (w *growingWorld) layWaiting(n int) {
	w.b.Helper()
	due := time.Now().Add(24 * time.Hour)
	w.laid += n
	w.sample = w.triggerAll(w.rt, n, 1, func(n int) *runlane.TriggerOptions {
		return &runlane.TriggerOptions{RunAt: due.Add(time.Duration(n) * time.Millisecond)}
	})
}

// shrink removes n finished runs, the oldest.
func (w *growingWorld) shrink(n int) error {
	w.made = w.made[:0]
	for n > 0 {
		progress, err := w.storage.PruneRuns(w.b.Context(), &lane.PruneCommand{
			PageQuery: lane.PageQuery{Environment: w.rt.Environment(), Limit: min(n, runlane.MaxPageLimit)}, OlderThan: time.Now().Add(time.Hour),
		})
		if err != nil {
			return err
		}
		if progress.Pruned == 0 {
			return fmt.Errorf("%d runs are not there to be removed", n)
		}
		n -= progress.Pruned
	}
	return nil
}
