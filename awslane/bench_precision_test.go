package awslane_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

const (
	precisionRuns = 100
	// precisionFirst and precisionSpan are when they are due: at instants all over the span.
	precisionFirst = 4 * time.Second
	precisionSpan  = 3 * time.Second
	// precisionTick is the distance of ticks where the transport cannot delay. A deployment ticks every minute: the part of lateness
	// that is the wait for a tick grows with the distance, the part from tick to start does not.
	precisionTick = time.Second
)

// BenchmarkWakeupPrecision reports how long after its due time a waiting run's handler starts: where SQS delays wakeups, whose seconds
// are whole and rounded up, and where it does not and ticks find what is due. One iteration is 100 runs that are due at random instants
// within 3 seconds. since-tick is from the beginning of the first tick that could find the run. Emulators deliver delayed messages
// up to some seconds late.
//
//	go test -run '^$' -bench WakeupPrecision ./awslane
func BenchmarkWakeupPrecision(b *testing.B) {
	b.Run("native-delay", func(b *testing.B) { measurePrecision(b, nil, 0) })
	b.Run("ticks", func(b *testing.B) {
		measurePrecision(b, func(t lane.Transport) lane.Transport {
			receiver, ok := lane.As[lane.Receiver](t)
			if !ok {
				b.Fatalf("%T does not receive", t)
			}
			return undelayed{t, receiver}
		}, precisionTick)
	})
}

// undelayed is a transport that cannot delay.
type undelayed struct {
	lane.Transport
	lane.Receiver
}

func (u undelayed) Capabilities() lane.TransportCapabilities {
	c := u.Transport.Capabilities()
	c.NativeDelay = false
	return c
}

// lateness is one start.
type lateness struct{ due, began time.Time }

// measurePrecision works runs that wait. every is the distance of ticks, 0 for none.
func measurePrecision(b *testing.B, wrap func(lane.Transport) lane.Transport, every time.Duration) {
	b.Helper()
	began := make(chan lateness, precisionRuns)
	task := runlane.NewTask[time.Time]("bench.due", nil)
	handler := task.Handle(func(_ context.Context, _ *runlane.Attempt, due time.Time) error {
		began <- lateness{due, time.Now()}
		return nil
	})
	rt, _ := openEngine(b, &requestCounter{count: map[string]int{}}, &recording{}, wrap, handler, 16)
	ticks := startTicking(b, rt, every)
	seed := rand.Uint64()
	b.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) // no secrecy
	var starts []lateness
	for b.Loop() {
		at := time.Now().Add(precisionFirst)
		var triggers errgroup.Group
		triggers.SetLimit(8)
		for range precisionRuns {
			due := at.Add(time.Duration(random.Int64N(int64(precisionSpan)))).Truncate(time.Millisecond) // runs count in these
			triggers.Go(func() error {
				_, err := rt.Trigger(b.Context(), task.With(due), &runlane.TriggerOptions{RunAt: due})
				return err
			})
		}
		if err := triggers.Wait(); err != nil {
			b.Fatal(err)
		}
		if time.Now().After(at) {
			b.Error("the machine is too busy: runs were due before all were triggered")
		}
		deadline := time.After(time.Minute)
		for n := range precisionRuns {
			select {
			case s := <-began:
				starts = append(starts, s)
			case <-deadline:
				b.Fatalf("%d of %d runs began", n, precisionRuns)
			}
		}
	}
	var late, sinceTick []float64
	ticked := ticks()
	for _, s := range starts {
		late = append(late, s.began.Sub(s.due).Seconds()*1000)
		for _, tick := range ticked {
			if !tick.Before(s.due) {
				sinceTick = append(sinceTick, s.began.Sub(tick).Seconds()*1000)
				break
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(late, 0.5), "ms/late-p50")
	b.ReportMetric(quantile(late, 0.99), "ms/late-p99")
	if every > 0 {
		b.ReportMetric(quantile(sinceTick, 0.5), "ms/since-tick-p50")
		b.ReportMetric(quantile(sinceTick, 0.99), "ms/since-tick-p99")
	}
	if early := quantile(late, 0); early < 0 {
		b.Errorf("a run began %v ms before it was due", -early)
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
