package core_test

import (
	"testing"
	"testing/synctest"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/memlane"
)

func TestHostMetrics_CountBesideTheOptionsOwn(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]core.Metrics{"without": nil, "with": newTally(), "with one that panics": panickingMetrics{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				given := newTally()
				task, handler := watched()
				rt, err := core.Open(host.With(t.Context(), host.Host{Metrics: given}), memlane.New(), &core.Options{
					Handlers: []runlane.Handler{handler}, Metrics: own,
				})
				if err != nil {
					t.Fatal(err)
				}
				trigger(t, rt, task.With(struct{}{}))
				if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
					t.Fatal(err)
				}
				if err := rt.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if given.counts[core.MetricRunsCreated] != 1 || given.counts[core.MetricAttemptsStarted] == 0 || len(given.times) == 0 {
					t.Errorf("given: %v %v", given.counts, given.times)
				}
				if mine, ok := own.(*tally); ok && mine.counts[core.MetricRunsCreated] != 1 {
					t.Errorf("own: %v", mine.counts)
				}
			})
		})
	}
}
