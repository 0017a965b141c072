package costs_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
)

// join plays a flow of n nodes of which the last goes after all others. Those end in the order of their ids, which is the
// same each time.
func join(n int) func(*world) {
	return func(w *world) {
		f := runlane.NewFlow("costs")
		var before []runlane.Node
		for i := range n - 1 {
			before = append(before, f.Add(fmt.Sprint("part ", i), once.With(small("hello")), nil))
		}
		f.Add("join", once.With(small("hello")), &runlane.NodeOptions{After: before})
		w.measured(func() {
			if _, err := w.rt.StartFlow(w.Context(), f, nil); err != nil {
				w.Fatal(err)
			}
		})
		slices.SortFunc(w.wire.pending, func(a, b arrival) int { return cmp.Compare(a.wakeup.RunID, b.wakeup.RunID) })
		w.settle()
		state, err := w.rt.Flows().Get(w.Context(), "costs")
		if err != nil || state.Status != runlane.FlowCompleted {
			w.Fatal(state, err)
		}
	}
}
