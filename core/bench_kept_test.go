package core_test

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// keptRuns is how many finished runs BenchmarkKeptRuns keeps.
const keptRuns = 1_000_000

// BenchmarkKeptRuns finishes a million runs on the embedded lane, then ticks with nothing due among them. One iteration is one tick.
// It reports the heap that lives on, the most that the process ever had from the operating system (Linux), and the ticks' median.
func BenchmarkKeptRuns(b *testing.B) {
	before := heap()
	rt, finish := benchRuntime(b, func(context.Context) {})
	for range 20 { // so that what is kept is measured, not what waits
		finish(keptRuns/20, 4)
	}
	kept := heap() - before

	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		began := time.Now()
		if _, err := rt.Tick(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	b.ReportMetric(float64(kept)/keptRuns, "bytes/kept-run")
	b.ReportMetric(float64(peakMemory())/1e6, "MB-peak")
	b.ReportMetric(float64(quantile(times, 0.5).Microseconds())/1000, "ms/tick-p50")
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTriggerToStart triggers 1,000 runs a second, evenly, and reports how long they wait for their start. One iteration is
// one run.
func BenchmarkTriggerToStart(b *testing.B) {
	const every = time.Millisecond
	var mu sync.Mutex
	var waits []time.Duration
	all := make(chan struct{})
	task := runlane.NewTask[time.Time]("bench.started", nil)
	rt, err := core.Open(b.Context(), memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, _ *runlane.Attempt, triggered time.Time) error {
			wait := time.Since(triggered)
			mu.Lock()
			defer mu.Unlock()
			if waits = append(waits, wait); len(waits) == b.N {
				close(all)
			}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	stop := work(b, rt)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	b.ResetTimer()
	for range b.N {
		<-ticker.C
		if _, err := rt.Trigger(b.Context(), task.With(time.Now()), nil); err != nil {
			b.Fatal(err)
		}
	}
	<-all
	b.StopTimer()
	stop()
	b.ReportMetric(float64(quantile(waits, 0.5).Microseconds()), "µs/start-p50")
	b.ReportMetric(float64(quantile(waits, 0.99).Microseconds()), "µs/start-p99")
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// benchRuntime executes no-op runs on the embedded lane. finish triggers n of them from so many goroutines and returns when all have
// ended and the worker has stopped.
func benchRuntime(b *testing.B, handle func(context.Context)) (rt *core.Runtime, finish func(n, triggering int)) {
	b.Helper()
	var left atomic.Int64
	all := make(chan struct{}, 1)
	task := runlane.NewTask[struct{}]("bench.noop", nil)
	rt, err := core.Open(b.Context(), memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ struct{}) error {
			handle(ctx)
			if left.Add(-1) == 0 {
				all <- struct{}{}
			}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	return rt, func(n, triggering int) {
		left.Store(int64(n))
		stop := work(b, rt)
		var triggers sync.WaitGroup
		for i := range triggering {
			triggers.Go(func() {
				for range (n + triggering - 1 - i) / triggering {
					if _, err := rt.Trigger(b.Context(), task.With(struct{}{}), nil); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		triggers.Wait()
		<-all
		stop()
	}
}

// work starts a worker; stop ends it and waits for it.
func work(b *testing.B, rt *core.Runtime) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: 4, NoTick: true}) }() // ends with stop
	return func() {
		cancel()
		if err := <-worked; err != nil {
			b.Fatal(err)
		}
	}
}

// heap is what lives on after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peakMemory is the most memory the process ever had, 0 where the operating system does not say.
func peakMemory() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))]
}
