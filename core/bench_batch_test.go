package core_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// BenchmarkTrigger makes runs that no worker executes, one by one and in batches of 100. One iteration is one run.
func BenchmarkTrigger(b *testing.B) {
	task := runlane.NewTask[struct{}]("bench.trigger", nil)
	open := func(b *testing.B) *core.Runtime {
		b.Helper()
		rt, err := core.Open(b.Context(), memlane.New(), &core.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = rt.Close(context.Background()) })
		return rt
	}
	b.Run("one", func(b *testing.B) {
		rt := open(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rt.Trigger(b.Context(), task.With(struct{}{}), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("batch", func(b *testing.B) {
		rt := open(b)
		items := make([]core.BatchItem, 100)
		for i := range items {
			items[i].Call = task.With(struct{}{})
		}
		b.ReportAllocs()
		for n := 0; n < b.N; n += len(items) {
			if _, err := rt.TriggerBatch(b.Context(), items); err != nil {
				b.Fatal(err)
			}
		}
	})
}
