package dynamostore

import (
	"github.com/runlane/runlane-go"
)

// addPruningCases adds the rows about pruning to TestBudget.
func addPruningCases(cases map[string]budgetCase) {
	pruned := func(w *world) *world {
		if progress := w.prune(w.pruning()); progress.Pruned != 1 {
			w.Fatalf("%+v", progress)
		}
		return w
	}
	finished := func(created *runlane.RunCreated) func(w *world) *world {
		return func(w *world) *world { return w.finished(created, nil) }
	}
	cases["pruning a simple run"] = budgetCase{finished(nil), pruned, nil}
	cases["pruning a run with ten steps"] = budgetCase{func(w *world) *world { return w.finished(nil, nil).keepTen() }, pruned, nil}
	cases["pruning a run with both owners"] = budgetCase{finished(owned("a", []byte(`{}`))), pruned, nil}
	cases["pruning a run with a payload of 3 KB"] = budgetCase{finished(&runlane.RunCreated{Payload: bulky(3)}), pruned, nil}
}
