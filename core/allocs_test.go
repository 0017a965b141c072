package core_test

import (
	"context"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A run that neither remembers nor waits pays nothing for those that do: its way from trigger to success has as many
// allocations as written here. More of them is a fault; fewer is another number here and in docs/benchmarks.md.
func TestAllocations_OfARunThatWaitsForNothing_AreExact(t *testing.T) { // allocations are the process's
	const want = 33
	task := runlane.NewTask[struct{}]("noop", nil)
	rt := openQuiet(t, memlane.New(), core.Options{
		Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
			return nil
		})},
	})
	got := testing.AllocsPerRun(2000, func() {
		made := trigger(t, rt, task.With(struct{}{}))
		wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: rt.Environment(), RunID: made.ID}, Queue: made.Queue}
		result, err := rt.ExecuteDelivery(t.Context(), wakeup, nil)
		if err != nil || result.Run.Status != runlane.StatusSucceeded {
			t.Fatal(result, err)
		}
	})
	if patience.Race {
		t.Logf("%v allocations, of which the race detector has some", got)
	} else if got != want {
		t.Errorf("%v allocations, and %d are expected", got, want)
	}
}
