package core_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

const (
	precisionRuns = 300
	// precisionFirst and precisionSpan are when they are due: at instants all over the span.
	precisionFirst = 500 * time.Millisecond
	precisionSpan  = 2500 * time.Millisecond
	// precisionTick is the distance of ticks where the transport cannot delay. Workers tick every minute: the part of lateness that is
	// the wait for a tick grows with the distance, the part from tick to start does not.
	precisionTick = 100 * time.Millisecond
)

// BenchmarkWakeupPrecision reports how long after its due time a waiting run's handler starts, on the embedded lane: where the
// transport delays wakeups itself, and where it cannot and ticks find what is due. One iteration is 300 runs that are due at random
// instants within 2.5 seconds. since-tick is from the beginning of the first tick that could find the run.
//
//	go test -run '^$' -bench WakeupPrecision ./core
func BenchmarkWakeupPrecision(b *testing.B) {
	b.Run("native-delay", func(b *testing.B) { measurePrecision(b, memlane.NewTransport(nil), 0) })
	b.Run("ticks", func(b *testing.B) {
		transport := memlane.NewTransport(nil)
		measurePrecision(b, undelayed{transport, transport}, precisionTick)
	})
}

// undelayed is a transport that cannot delay.
type undelayed struct {
	lane.Transport
	lane.Receiver
}

func (undelayed) Capabilities() lane.TransportCapabilities { return lane.TransportCapabilities{} }

// lateness is one start.
type lateness struct{ due, began time.Time }

// measurePrecision works runs that wait. every is the distance of ticks, 0 for none.
func measurePrecision(b *testing.B, transport lane.Transport, every time.Duration) {
	b.Helper()
	l, err := lane.New(memlane.NewStorage(nil), transport, nil)
	if err != nil {
		b.Fatal(err)
	}
	began := make(chan lateness, precisionRuns)
	task := runlane.NewTask[time.Time]("bench.due", nil)
	rt, err := core.Open(b.Context(), l, &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, _ *runlane.Attempt, due time.Time) error {
			began <- lateness{due, time.Now()}
			return nil
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	stop := work(b, rt)
	ticks := startTicking(b, rt, every)
	seed := rand.Uint64()
	b.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) // no secrecy
	var starts []lateness
	for b.Loop() {
		at := time.Now().Add(precisionFirst)
		for range precisionRuns {
			due := at.Add(time.Duration(random.Int64N(int64(precisionSpan)))).Truncate(time.Millisecond) // runs count in these
			if _, err := rt.Trigger(b.Context(), task.With(due), &runlane.TriggerOptions{RunAt: due}); err != nil {
				b.Fatal(err)
			}
		}
		if time.Now().After(at) {
			b.Error("the machine is too busy: runs were due before all were triggered")
		}
		for range precisionRuns {
			starts = append(starts, <-began)
		}
	}
	stop()
	var late, sinceTick []time.Duration
	ticked := ticks()
	for _, s := range starts {
		late = append(late, s.began.Sub(s.due))
		for _, tick := range ticked {
			if !tick.Before(s.due) {
				sinceTick = append(sinceTick, s.began.Sub(tick))
				break
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(late, 0.5), "ms/late-p50")
	b.ReportMetric(milliseconds(late, 0.99), "ms/late-p99")
	if every > 0 {
		b.ReportMetric(milliseconds(sinceTick, 0.5), "ms/since-tick-p50")
		b.ReportMetric(milliseconds(sinceTick, 0.99), "ms/since-tick-p99")
	}
	if early := quantile(late, 0); early < 0 {
		b.Errorf("a run began %s before it was due", -early)
	}
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// startTicking ticks at a distance; what it returns ends the ticks and says when each began.
func startTicking(b *testing.B, rt *core.Runtime, every time.Duration) (ended func() []time.Time) {
	b.Helper()
	if every == 0 {
		return func() []time.Time { return nil }
	}
	ctx, cancel := context.WithCancel(b.Context())
	var ticked []time.Time
	var fault error
	var ticking sync.WaitGroup
	ticking.Go(func() { // ends with ctx
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			ticked = append(ticked, time.Now())
			if _, err := rt.Tick(context.WithoutCancel(ctx), nil); err != nil {
				fault = err
			}
		}
	})
	return func() []time.Time {
		cancel()
		ticking.Wait()
		if fault != nil {
			b.Fatal(fault)
		}
		return ticked
	}
}

func milliseconds(times []time.Duration, q float64) float64 {
	return float64(quantile(times, q).Microseconds()) / 1000
}
