package core_test

import (
	"context"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A receipt tells a signal that was there already from one that was put now.
func TestSignal_Receipt_TellsWhatWasThere(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[int]("t", nil)
	w := &retryWorld{Runtime: openQuiet(t, memlane.New(), core.Options{},
		task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))}
	triggerWith(t, w, task.With(1), &runlane.TriggerOptions{RunID: "run_a"})
	signal, receipt := runlane.NewSignal[int]("go"), &runlane.SignalReceipt{Existing: true}
	for i, c := range []struct {
		id       string
		existing bool
	}{{"one", false}, {"one", true}, {"two", false}, {"", false}, {"", false}, {"two", true}} {
		options := &runlane.SignalOptions{ID: c.id, Receipt: receipt}
		if err := w.Signal(t.Context(), "run_a", signal.With(1), options); err != nil || receipt.Existing != c.existing {
			t.Errorf("%d: %q is there already: %v, %v", i, c.id, receipt.Existing, err)
		}
	}
}
