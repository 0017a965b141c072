package core_test

import (
	"context"
	"runtime"
	"testing"
)

// BenchmarkEmbeddedRuns takes no-op runs from trigger to succeeded on the embedded lane, history kept; one worker with four attempts
// at once executes. Steady: two goroutines trigger, and the worker keeps up. Backlog: four trigger faster than that, and what waits
// takes separate memory.
func BenchmarkEmbeddedRuns(b *testing.B) {
	for name, triggering := range map[string]int{"steady": 2, "backlog": 4} {
		b.Run(name, func(b *testing.B) {
			rt, finish := benchRuntime(b, func(context.Context) {})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			finish(b.N, triggering)
			b.StopTimer()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/run")
			if err := rt.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
