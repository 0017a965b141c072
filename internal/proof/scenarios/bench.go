package scenarios

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// BenchmarkSignalToStart measures from a signal to a waiting run until its handler is called again. One round is so
// many signals that a 99th percentile means something.
func BenchmarkSignalToStart(b *testing.B, l *lane.Lane) {
	b.Helper()
	told := make(chan time.Time, 1)
	task := runlane.NewTask[int]("asks", nil)
	handler := task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		if a.Number > 1 {
			told <- time.Now()
		}
		_, err := approved.Wait(ctx, a, nil)
		return err
	})
	ctx, stop := context.WithCancel(b.Context())
	rt, err := core.Open(ctx, l, &core.Options{
		Handlers: []runlane.Handler{handler}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(ctx, nil) }() // ends with stop
	const signals = 500
	var took []time.Duration
	for range b.N * signals {
		made, err := rt.Trigger(ctx, task.With(1), nil)
		if err != nil {
			b.Fatal(err)
		}
		waits(b, rt, made.Run.ID)
		began := time.Now()
		if err := rt.Signal(ctx, made.Run.ID, approved.With(decision{}), nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-told).Sub(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	stop()
	if err := <-worked; err != nil {
		b.Error(err)
	}
	if err := rt.Close(b.Context()); err != nil {
		b.Error(err)
	}
}

// waits returns once the run waits for its signal.
func waits(b *testing.B, rt *core.Runtime, id runlane.RunID) {
	b.Helper()
	for {
		run, err := rt.Runs().Get(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if run.Status == runlane.StatusReleased {
			return
		}
	}
}
