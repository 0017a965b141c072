package core_test

import (
	"context"
	"errors"
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

// The host's Failed gets the text of a failure whose run must not have it.
func TestHostFailed_GetsTheText_UnlessTextsAreHidden(t *testing.T) {
	t.Parallel()
	for hidden, want := range map[bool]string{false: "disk is full", true: ""} {
		synctest.Test(t, func(t *testing.T) {
			got := ""
			ctx := host.With(t.Context(), host.Host{Failed: func(_, text string) { got = text }})
			task := runlane.NewTask[struct{}]("failing", nil)
			rt, err := core.Open(ctx, memlane.New(), &core.Options{HideErrorTexts: hidden, Handlers: []runlane.Handler{
				task.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return errors.New("disk is full") }),
			}})
			if err != nil {
				t.Fatal(err)
			}
			trigger(t, rt, task.With(struct{}{}))
			if err := errors.Join(rt.Work(t.Context(), &core.WorkOptions{Drain: true}), rt.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("hidden %v: %q, want %q", hidden, got, want)
			}
		})
	}
}
