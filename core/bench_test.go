package core_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// BenchmarkEmbeddedRuns takes no-op runs from trigger to succeeded on the embedded lane, history kept: several goroutines trigger,
// one worker executes.
func BenchmarkEmbeddedRuns(b *testing.B) {
	var finished atomic.Int64
	all := make(chan struct{})
	task := runlane.NewTask[struct{}]("bench.noop", nil)
	rt, err := core.Open(b.Context(), memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
			if finished.Add(1) == int64(b.N) {
				close(all)
			}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	work, stop := context.WithCancel(b.Context())
	worked := make(chan error, 1)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	go func() { worked <- rt.Work(work, &core.WorkOptions{Concurrency: 4, NoTick: true}) }()
	var triggers sync.WaitGroup
	const triggering = 4
	for i := range triggering {
		triggers.Go(func() {
			for range (b.N + triggering - 1 - i) / triggering {
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
	if err := <-worked; err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/run")
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
