package scenarios

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// FairnessHarness says how to prove fairness between concurrency keys over a storage.
type FairnessHarness struct {
	// Storage is empty. Required.
	Storage lane.Storage
	// Waiting is how many runs of one key wait. Required.
	Waiting int
	// Environment of the runs. "" means a separate one.
	Environment runlane.Environment
	// Copy makes Waiting copies of a waiting run, where triggering them one by one would take too long. nil triggers
	// them.
	Copy func(example *runlane.Run)
}

// RunFairness proves that a concurrency key with many waiting runs does not delay the first run of another key. That
// run starts after at most one more run of the first key, in each of three cases: it is triggered while the others are
// executed, it becomes due while no worker or tick reads the storage, or a polling worker finds it.
func RunFairness(t *testing.T, h FairnessHarness) {
	t.Helper()
	f := &fairness{T: t, transport: NewScriptedTransport(), clock: NewClock(time.Now())}
	task := runlane.NewTask("fairness", &runlane.TaskOptions[struct{}]{
		Queue: runlane.Queue{Name: "fair", Concurrency: 1},
	})
	f.call = task.With(struct{}{})
	l, err := lane.New(h.Storage, f.transport, nil)
	f.must(err)
	if h.Environment == "" {
		h.Environment = newEnvironment()
	}
	f.rt, err = core.Open(t.Context(), l, &core.Options{
		Environment: h.Environment, Logger: discard(), World: &core.World{Now: f.clock.Now},
		Handlers: []runlane.Handler{task.Handle(f.handle)},
	})
	f.must(err)
	t.Cleanup(func() { f.must(f.rt.Close(context.WithoutCancel(t.Context()))) })
	if h.Copy != nil {
		h.Copy(f.lay(2)[1])
	} else {
		f.lay(h.Waiting)
	}
	f.clock.Advance(time.Minute)
	f.tick()
	for range 3 {
		f.next()
	}

	f.trigger("triggered", nil)
	f.starts("triggered", f.next)

	f.trigger("due", &runlane.TriggerOptions{Delay: time.Hour})
	f.clock.Advance(2 * time.Hour)
	f.wakeups = nil // all that were under way are lost
	f.tick()
	f.starts("due", f.next)

	f.clock.Advance(2 * time.Hour)
	f.poll()
}

const crowd = "crowd"

// fairness is one proof: a transport whose wakeups are executed one after the other, as they came.
type fairness struct {
	*testing.T

	rt        *core.Runtime
	transport *ScriptedTransport
	clock     *Clock
	call      runlane.Call
	wakeups   []lane.Wakeup

	mu      sync.Mutex
	started []string // concurrency keys
	onStart func(key string)
}

func (f *fairness) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fairness) handle(_ context.Context, a *runlane.Attempt, _ struct{}) error {
	f.mu.Lock()
	f.started = append(f.started, a.Run.ConcurrencyKey)
	react := f.onStart
	f.mu.Unlock()
	if react != nil {
		react(a.Run.ConcurrencyKey)
	}
	return nil
}

// lay triggers runs, of which all but the first wait.
func (f *fairness) lay(n int) (runs []*runlane.Run) {
	f.Helper()
	item := core.BatchItem{Call: f.call, Options: &runlane.TriggerOptions{ConcurrencyKey: crowd}}
	results, err := f.rt.TriggerBatch(f.Context(), slices.Repeat([]core.BatchItem{item}, n))
	f.must(err)
	for i := range results {
		f.must(results[i].Err)
		runs = append(runs, results[i].Result.Run)
	}
	slices.SortStableFunc(runs, func(a, b *runlane.Run) int { return b.DispatchExpiresAt.Compare(a.DispatchExpiresAt) })
	return runs
}

func (f *fairness) trigger(key string, options *runlane.TriggerOptions) {
	f.Helper()
	o := runlane.TriggerOptions{}
	if options != nil {
		o = *options
	}
	o.ConcurrencyKey = key
	_, err := f.rt.Trigger(f.Context(), f.call, &o)
	f.must(err)
}

func (f *fairness) tick() {
	f.Helper()
	_, err := f.rt.Tick(f.Context(), nil)
	f.must(err)
}

// next executes what the oldest wakeup asks for.
func (f *fairness) next() {
	f.Helper()
	for _, sent := range f.transport.TakePublished() {
		f.wakeups = append(f.wakeups, sent.Wakeup)
	}
	if len(f.wakeups) == 0 {
		f.Fatal("no worker is woken")
	}
	wakeup := f.wakeups[0]
	f.wakeups = f.wakeups[1:]
	_, err := f.rt.ExecuteDelivery(f.Context(), wakeup, nil)
	f.must(err)
}

// starts demands that a run of the key starts behind one more of the crowd at most.
func (f *fairness) starts(key string, step func()) {
	f.Helper()
	before := len(f.startedKeys())
	for range 4 {
		step()
		if since := f.startedKeys()[before:]; slices.Contains(since, key) {
			if ahead := slices.Index(since, key); ahead > 1 {
				f.Errorf("%s: %d others started before it", key, ahead)
			}
			return
		}
	}
	f.Errorf("%s: it has not started, and %d others have", key, len(f.startedKeys())-before)
}

func (f *fairness) startedKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.started)
}

// poll does the same with a worker that asks the storage, one attempt at a time. The run is triggered while the third
// of the crowd executes. A scan that had begun before cannot show it, and the run which that scan found begins first:
// that may be one more.
func (f *fairness) poll() {
	f.Helper()
	ctx, stop := patience.Context(f)
	before := len(f.startedKeys())
	f.mu.Lock()
	f.onStart = func(key string) {
		switch n := len(f.startedKeys()) - before; {
		case n == 3:
			if _, err := f.rt.Trigger(ctx, f.call, &runlane.TriggerOptions{
				ConcurrencyKey: "polled",
				Deferred:       true,
			}); err != nil {
				f.Error(err)
			}
		case key == "polled", n > 10:
			stop()
		}
	}
	f.mu.Unlock()
	f.must(f.rt.Work(ctx, &core.WorkOptions{NoTick: true, Concurrency: 1}))
	since := f.startedKeys()[before:]
	if ahead := slices.Index(since, "polled"); ahead < 3 || ahead > 5 {
		f.Errorf("polled: started were %s", fmt.Sprint(since))
	}
}
