package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// watched is a task whose handler fails its first attempt.
func watched() (*runlane.Task[struct{}], runlane.Handler) {
	task := runlane.NewTask("watched", &runlane.TaskOptions[struct{}]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second), NoJitter: true},
	})
	return task, task.Handle(func(_ context.Context, a *runlane.Attempt, _ struct{}) error {
		if a.Number == 1 {
			return errors.New("no")
		}
		return a.SetOutput("yes")
	})
}

// watchedRun opens a runtime with the options, executes one run to its end and closes it.
func watchedRun(t *testing.T, options core.Options) *runlane.Run {
	t.Helper()
	task, handler := watched()
	rt := openQuiet(t, memlane.New(), options, handler)
	stop := startWork(t, rt, nil)
	result := trigger(t, rt, task.With(struct{}{}))
	run, err := rt.Wait(t.Context(), result.ID)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := rt.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return run
}

var watchedEvents = []runlane.EventType{
	runlane.EventCreated, runlane.EventDeliveryRequested, runlane.EventLeaseClaimed, runlane.EventStarted, runlane.EventRetryScheduled,
	runlane.EventLeaseClaimed, runlane.EventStarted, runlane.EventSucceeded,
}

func TestHooks_SeeEveryCommitOfARunInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var changes []core.Change
		run := watchedRun(t, core.Options{Hooks: []core.Hook{func(c core.Change) { changes = append(changes, c) }}})
		var types []runlane.EventType
		for i, c := range changes {
			for _, e := range c.Events {
				types = append(types, e.Type())
			}
			if c.Run.ID != run.ID || c.Run.Payload != nil || c.Run.Output != nil || c.Run.EventSequence != c.Events[len(c.Events)-1].Sequence {
				t.Errorf("change %d is %+v", i, c)
			}
		}
		if !slices.Equal(types, watchedEvents) || len(changes) != 5 {
			t.Errorf("%d changes: %v", len(changes), types)
		}
	})
}

// manyWatched executes more runs than a hook's buffer holds and returns the figures, how each run ended, and for how long.
func manyWatched(t *testing.T, hooks ...core.Hook) (m *tally, ends []string, took time.Duration) {
	t.Helper()
	m = newTally()
	task, handler := watched()
	rt := openQuiet(t, memlane.New(), core.Options{Metrics: m, Hooks: hooks}, handler)
	began := time.Now()
	for i := range 300 { // five commits each
		options := &runlane.TriggerOptions{RunID: runlane.RunID(fmt.Sprintf("run_%04d", i))}
		triggerWith(t, rt, task.With(struct{}{}), options)
		for range 2 { // the first attempt fails
			time.Sleep(time.Second)
			if _, err := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{RunID: options.RunID}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		run := runOf(t, rt, options.RunID)
		types := []string{fmt.Sprint(run.TaskID, run.Meta)}
		for record, err := range rt.Runs().Events(t.Context(), options.RunID, nil) {
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, fmt.Sprint(record.Type(), " ", record.OccurredAt.Sub(began)))
		}
		ends = append(ends, strings.Join(types, ", "))
	}
	took = time.Since(began)
	if err := rt.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return m, ends, took
}

// A hook that never returns, one that always panics and one that changes what it is given: every commit, its moment and every figure are what they are without, but for
// the changes that the first had no room for, and these are counted.
func TestHooks_ThatBlockOrPanic_LeaveCommitsAndFiguresAsTheyAre(t *testing.T) {
	t.Parallel()
	measure := func(hooks ...func(release chan struct{}) core.Hook) (m *tally, ends []string, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			var made []core.Hook
			for _, hook := range hooks {
				made = append(made, hook(release))
			}
			m, ends, took = manyWatched(t, made...)
			close(release)
			synctest.Wait()
		})
		return m, ends, took
	}
	plain, ends, took := measure()
	if plain.counts[core.MetricRunsSucceeded] != 300 {
		t.Fatalf("figures are %v", plain.counts)
	}
	var seen atomic.Int64
	blocks := func(release chan struct{}) core.Hook { return func(core.Change) { <-release; seen.Add(1) } }
	panics := func(chan struct{}) core.Hook { return func(core.Change) { panic("hook") } }
	spoils := func(chan struct{}) core.Hook {
		return func(c core.Change) {
			c.Run.Meta = map[string]string{"spoiled": "yes"}
			for _, e := range c.Events {
				if created, ok := e.Body.(*runlane.RunCreated); ok {
					created.TaskID = "spoiled"
				}
			}
		}
	}
	hooked, hookedEnds, hookedTook := measure(blocks, panics, spoils)
	dropped := hooked.counts[core.MetricChangesDropped]
	if commits := int64(5 * 300); dropped <= 0 || dropped+seen.Load() != commits {
		t.Errorf("%d of %d changes were dropped, %d were seen", dropped, commits, seen.Load())
	}
	delete(hooked.counts, core.MetricChangesDropped)
	if !maps.Equal(hooked.counts, plain.counts) || !maps.EqualFunc(hooked.times, plain.times, slices.Equal) {
		t.Errorf("figures are %v, without hooks %v", hooked.counts, plain.counts)
	}
	if !slices.Equal(hookedEnds, ends) || hookedTook != took {
		t.Errorf("histories differ, or took %s instead of %s", hookedTook, took)
	}
}

// tally is a Metrics that adds up.
type tally struct {
	mu     sync.Mutex
	counts map[core.Metric]int64
	times  map[core.Metric][]time.Duration
	labels map[core.Labels]bool
}

func newTally() *tally {
	return &tally{counts: map[core.Metric]int64{}, times: map[core.Metric][]time.Duration{}, labels: map[core.Labels]bool{}}
}

func (m *tally) Count(name core.Metric, n int64, labels core.Labels) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name] += n
	m.labels[labels] = true
}

func (m *tally) Observe(name core.Metric, d time.Duration, _ core.Labels) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times[name] = append(m.times[name], d)
}

func TestMetrics_CountWhatHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newTally()
		watchedRun(t, core.Options{Metrics: m})
		want := map[core.Metric]int64{
			core.MetricRunsCreated: 1, core.MetricRunsSucceeded: 1, core.MetricAttemptsStarted: 2, core.MetricRetriesScheduled: 1,
			core.MetricDeliveriesRequested: 1, core.MetricWakeupsPublished: 1,
		}
		if !maps.Equal(m.counts, want) {
			t.Errorf("counts are %v, want %v", m.counts, want)
		}
		if len(m.times[core.MetricStartDelay]) != 1 || len(m.times[core.MetricAttemptTime]) != 2 || !slices.Equal(m.times[core.MetricRunTime], []time.Duration{time.Second}) {
			t.Errorf("times are %v", m.times)
		}
		if !m.labels[core.Labels{Environment: "default", TaskID: "watched", Queue: "default"}] {
			t.Errorf("labels are %v", m.labels)
		}
	})
}

type panickingMetrics struct{}

func (panickingMetrics) Count(core.Metric, int64, core.Labels)           { panic("metrics") }
func (panickingMetrics) Observe(core.Metric, time.Duration, core.Labels) { panic("metrics") }
