//go:build proof

package dynamostore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

const (
	// growthCalls are timed of each operation in a round of each world, longCalls of those that ask every shard.
	growthCalls = 20
	longCalls   = 3
	// growthRounds are measured at least.
	growthRounds = 8
)

// BenchmarkGrowthDynamoDB measures what the runs that a table keeps cost those that are made: each operation of the runtime among so many
// finished runs, among so many that wait for their time, that were queued a moment ago, or that wait for the slot of their queue, beside
// the same among few. Calls of the two worlds alternate, so that whatever else the machine does meets both. Runs are laid down by the
// loader.
//
// A line has requests and units of one call, which are exact, the same of the small world (few-), and how many times as many, and as
// many dollars, it is; the medians of both in
// milliseconds, their p99 over all rounds (of the few calls of list and tick the longest), and the median ratio of neighboring rounds with its quartiles: 1.1 takes a tenth longer
// than among few. The emulator's times are its own; the requests and units are DynamoDB's.
//
//	go test -run '^$' -bench '^BenchmarkGrowthDynamoDB$' ./dynamostore [-retained]
//
// With -retained there are 100,000 too, which takes some minutes to lay down.
func BenchmarkGrowthDynamoDB(b *testing.B) {
	sizes := []int{10_000}
	if *retained {
		sizes = append(sizes, 100_000)
	}
	for _, kind := range growthKinds() {
		b.Run(kind.name, func(b *testing.B) {
			large, laid := openGrowth(b, kind.bounded), 0
			for _, size := range sizes {
				b.Run(strconv.Itoa(size), func(b *testing.B) {
					few := openGrowth(b, kind.bounded)
					few.lay(kind, kind.few)
					large.lay(kind, size-laid)
					laid = size
					for _, o := range growthOperations() {
						b.Run(o.name, func(b *testing.B) { compareGrowth(b, &o, few, large) })
					}
				})
			}
		})
	}
}

// TestGrowth_OperationsCostTheSame_HoweverManyRunsThereAre demands of two sizes that can be laid down in a moment what BenchmarkGrowthDynamoDB
// measures of the others.
func TestGrowth_OperationsCostTheSame_HoweverManyRunsThereAre(t *testing.T) {
	t.Parallel()
	for _, kind := range growthKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			few, many := openGrowth(t, kind.bounded), openGrowth(t, kind.bounded)
			few.lay(kind, 400) // pages are full, of any shard
			many.lay(kind, 1_600)
			for _, o := range growthOperations() {
				var used [2]Usage
				for i, w := range []*growth{few, many} {
					w.prepare(&o)
					used[i] = w.use(&o, 0)
				}
				if used[0].Requests == 0 || used[0].Requests != used[1].Requests || used[0].WriteUnits != used[1].WriteUnits ||
					used[1].ReadUnits > 1.1*used[0].ReadUnits {
					t.Errorf("%s uses %+v among few runs, %+v among many", o.name, used[0], used[1])
				}
			}
		})
	}
}

// growthKind are runs of a kind: example makes one.
type growthKind struct {
	name    string
	few     int
	bounded bool // the runs' queue has one slot
	example func(w *growth) runlane.RunID
}

func growthKinds() []growthKind {
	return []growthKind{
		{name: "retained", few: 1_000, example: func(w *growth) runlane.RunID {
			id := w.trigger(0)
			w.deliver(id)
			return id
		}},
		{name: "waiting", few: 100, example: func(w *growth) runlane.RunID { return w.trigger(24 * time.Hour) }},
		{name: "queued", few: 100, example: func(w *growth) runlane.RunID { return w.trigger(0) }},
		{name: "blocked", few: 100, bounded: true, example: func(w *growth) runlane.RunID {
			w.trigger(0) // has the slot
			return w.trigger(0)
		}},
	}
}

// growthOperation is a call that is timed, so often in a round; n counts. fresh runs are triggered before it for all of them.
type growthOperation struct {
	name  string
	calls int
	fresh bool
	call  func(w *growth, n int)
}

func growthOperations() []growthOperation {
	return []growthOperation{
		{name: "list", calls: longCalls, call: func(w *growth, _ int) {
			page, err := w.rt.Runs().List(w.counted(), nil)
			if err != nil || len(page.Items) != runlane.DefaultPageLimit {
				w.Fatal(page, err)
			}
		}},
		{name: "explain", calls: growthCalls, call: func(w *growth, _ int) {
			w.explained += 7919 // meets all of them, in an order that no cache foresees
			if _, err := w.rt.Runs().Explain(w.counted(), w.id(w.explained%w.laid)); err != nil {
				w.Fatal(err)
			}
		}},
		{name: "tick", calls: longCalls, call: func(w *growth, _ int) {
			result, err := w.rt.Tick(w.counted(), nil)
			if err != nil || result.Delivered.Done+result.Redelivered.Done+result.Dispatched.Done+result.Flushed.Done > 0 {
				w.Fatal(result, err)
			}
		}},
		{name: "trigger", calls: growthCalls, call: func(w *growth, _ int) { w.trigger(0) }},
		{name: "deliver", calls: growthCalls, fresh: true, call: func(w *growth, n int) {
			if id := w.fresh[n]; !w.bounded {
				w.deliver(id)
				return
			}
			w.deliver(w.wakeups.last) // which hands the slot to the next one
		}},
	}
}

// growth is a world with a runtime whose wakeups go nowhere: what they ask for is called by hand.
type growth struct {
	*world
	rt        *core.Runtime
	task      *runlane.Task[struct{}]
	bounded   bool
	wakeups   *silentTransport
	prefix    string
	laid      int
	explained int
	fresh     []runlane.RunID
}

// silentTransport accepts every wakeup and forgets all but the last.
type silentTransport struct {
	lane.UnimplementedTransport

	last runlane.RunID
}

func (*silentTransport) Capabilities() lane.TransportCapabilities {
	return lane.TransportCapabilities{NativeDelay: true}
}

func (t *silentTransport) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	t.last = c.Attempts[len(c.Attempts)-1].Wakeup.RunID
	return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, len(c.Attempts)), nil
}

func (*silentTransport) MaxDelay(runlane.QueueName) time.Duration { return 15 * time.Minute }

func (*silentTransport) SendWakeups(_ context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, len(wakeups)), nil
}

// openGrowth opens a runtime with a bounded queue, so that ticks look at all there is, which runs of a bounded kind are in.
func openGrowth(tb testing.TB, bounded bool) *growth {
	tb.Helper()
	w := &growth{world: openWorld(tb), bounded: bounded, wakeups: &silentTransport{}}
	single := runlane.Queue{Name: "single", Concurrency: 1}
	options := &runlane.TaskOptions[struct{}]{}
	if bounded {
		options.Queue = single
	}
	w.task = runlane.NewTask("bench.growth", options)
	l, err := lane.New(w.store, w.wakeups, &lane.Options{Environment: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	w.rt, err = core.Open(tb.Context(), l, &core.Options{
		Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: func() time.Time { return w.now }},
		Queues:   []runlane.Queue{single},
		Handlers: []runlane.Handler{w.task.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil })},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := w.rt.Close(context.WithoutCancel(w.Context())); err != nil {
			tb.Error(err)
		}
	})
	if _, err := w.rt.Tick(tb.Context(), nil); err != nil { // the first one stores the task's definition
		tb.Fatal(err)
	}
	return w
}

// lay adds n runs of the kind.
func (w *growth) lay(kind growthKind, n int) {
	w.Helper()
	w.run = &runlane.Run{ID: kind.example(w)}
	w.prefix, w.laid, w.explained = fmt.Sprintf("laid%06d", n), n, 0
	began := time.Now()
	w.load(w.template(), w.prefix, n)
	w.Logf("%d runs laid down in %s", n, time.Since(began).Round(time.Millisecond))
}

func (w *growth) id(n int) runlane.RunID {
	return runlane.RunID(fmt.Sprintf("run_%s%020d", w.prefix, n))
}

func (w *growth) trigger(delay time.Duration) runlane.RunID {
	w.Helper()
	result, err := w.rt.Trigger(w.counted(), w.task.With(struct{}{}), &runlane.TriggerOptions{Delay: delay})
	if err != nil {
		w.Fatal(err)
	}
	return result.Run.ID
}

func (w *growth) deliver(id runlane.RunID) {
	w.Helper()
	result, err := w.rt.ExecuteDelivery(w.counted(), lane.Wakeup{
		RunKey: lane.RunKey{Environment: "test", RunID: id}, Queue: w.task.Definition().Queue.Name,
	}, nil)
	if err != nil || result.Ignored != "" {
		w.Fatal(result, err)
	}
}

// counted is the context of calls that the meter counts.
func (w *growth) counted() context.Context { return withMeter(w.Context(), w.meter) }

// prepare makes what the calls of a round need.
func (w *growth) prepare(o *growthOperation) {
	w.Helper()
	w.fresh = w.fresh[:0]
	for range o.calls {
		if o.fresh {
			w.fresh = append(w.fresh, w.trigger(0))
		}
	}
}

// use calls once and says what that used.
func (w *growth) use(o *growthOperation, n int) Usage {
	w.Helper()
	w.meter = &meter{}
	o.call(w, n)
	return w.meter.Stats().Usage
}

// compareGrowth times an operation in two worlds.
func compareGrowth(b *testing.B, o *growthOperation, few, large *growth) {
	b.Helper()
	worlds := [2]*growth{few, large}
	for _, w := range worlds {
		tb := w.TB
		w.TB = b
		b.Cleanup(func() { w.TB = tb })
	}
	var all, p50 [2][]float64
	var used [2]Usage
	round := func() {
		var times [2][]float64
		for i := range worlds {
			worlds[(i+len(p50[0]))%2].prepare(o)
		}
		for n := range o.calls {
			for i := range worlds {
				side := (i + n + len(p50[0])) % 2
				began := time.Now()
				u := worlds[side].use(o, n)
				times[side] = append(times[side], float64(time.Since(began).Microseconds())/1000)
				used[side] = addUsage(used[side], u)
			}
		}
		for i := range worlds {
			all[i] = append(all[i], times[i]...)
			p50[i] = append(p50[i], quantile(times[i], 0.5))
		}
	}
	for b.Loop() {
		round()
	}
	for len(p50[0]) < growthRounds {
		round()
	}
	ratios := make([]float64, len(p50[0]))
	for n := range ratios {
		ratios[n] = p50[1][n] / p50[0][n]
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"few-", ""} {
		calls := float64(len(all[i]))
		b.ReportMetric(float64(used[i].Requests)/calls, name+"requests")
		b.ReportMetric(used[i].ReadUnits/calls, name+"read-units")
		b.ReportMetric(used[i].WriteUnits/calls, name+"write-units")
		b.ReportMetric(quantile(all[i], 0.5), name+"p50-ms")
		b.ReportMetric(quantile(all[i], 0.99), name+"p99-ms")
	}
	b.ReportMetric(float64(used[1].Requests)/float64(used[0].Requests), "requests-ratio")
	b.ReportMetric(dollars(used[1])/dollars(used[0]), "dollars-ratio")
	b.ReportMetric(quantile(ratios, 0.25), "p50-ratio-q1")
	b.ReportMetric(quantile(ratios, 0.5), "p50-ratio")
	b.ReportMetric(quantile(ratios, 0.75), "p50-ratio-q3")
	b.ReportMetric(quantile(all[1], 0.99)/quantile(all[0], 0.99), "p99-ratio")
}

// quantile is the value below which a part of the values lies.
func quantile(values []float64, part float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[int(part*float64(len(values)-1)+0.5)]
}
