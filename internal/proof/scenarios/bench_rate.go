package scenarios

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// BenchmarkRate starts 2,000 waiting runs at 100 a second over all: of 100 keys, and of one. It reports the throughput as a
// share of the rate, and how late the 99th percentile starts.
func BenchmarkRate(b *testing.B, open func(b *testing.B) *lane.Lane) {
	for _, keys := range []int{100, 1} {
		b.Run(strconv.Itoa(keys)+"keys", func(b *testing.B) {
			for b.Loop() {
				benchRate(b, open(b), keys, 100/keys)
			}
		})
	}
}

func benchRate(b *testing.B, l *lane.Lane, keys, rate int) {
	const runs = 2000
	var mu sync.Mutex
	starts := map[string][]time.Time{}
	all := make(chan struct{})
	left := runs
	task := runlane.NewTask("rated", &runlane.TaskOptions[jobPayload]{
		Queue: runlane.Queue{Name: "rated", Rate: runlane.PerSecond(rate)},
	})
	rt, err := core.Open(b.Context(), l, &core.Options{
		Environment: newEnvironment(),
		Logger:      slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, _ jobPayload) error {
			mu.Lock()
			defer mu.Unlock()
			starts[a.Run.ConcurrencyKey] = append(starts[a.Run.ConcurrencyKey], time.Now())
			if left--; left == 0 {
				close(all)
			}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	worked := make(chan error, 1)
	for i := range runs {
		o := &runlane.TriggerOptions{ConcurrencyKey: "k" + strconv.Itoa(i%keys)}
		if _, err := rt.Trigger(b.Context(), task.With(jobPayload{N: i}), o); err != nil {
			b.Fatal(err)
		}
	}
	go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: 50}) }() // ends with stop
	<-all
	stop()
	if err := <-worked; err != nil {
		b.Fatal(err)
	}
	if err := rt.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	reportRate(b, starts, rate)
}

func reportRate(b *testing.B, starts map[string][]time.Time, rate int) {
	var late []time.Duration
	var first, last time.Time
	n := 0
	for _, of := range starts {
		slices.SortFunc(of, time.Time.Compare)
		for i, at := range of {
			late = append(late, at.Sub(of[0])-time.Duration(i)*time.Second/time.Duration(rate))
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		n = len(of) - 1
	}
	slices.Sort(late)
	b.ReportMetric(float64(n)/float64(rate)/last.Sub(first).Seconds(), "of-rate")
	b.ReportMetric(float64(late[len(late)*99/100].Milliseconds()), "p99-late-ms")
}
