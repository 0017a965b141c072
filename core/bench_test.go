package core_test

import (
	"context"
	"runtime"
	"testing"
)

// BenchmarkEmbeddedRuns takes no-op runs from trigger to succeeded on the embedded lane, history kept: several goroutines trigger,
// one worker executes.
func BenchmarkEmbeddedRuns(b *testing.B) {
	rt, finish := benchRuntime(b, func(context.Context) {})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	finish(b.N)
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/run")
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
