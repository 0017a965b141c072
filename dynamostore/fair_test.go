package dynamostore

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
)

// With -retained as many runs wait as in the promise.
func TestFairness_ManyRunsOfOneKeyDoNotDelayAnother(t *testing.T) {
	w := newWorld(t)
	waiting := 1_000
	if *retained {
		waiting = 10_000
	}
	scenarios.RunFairness(t, scenarios.FairnessHarness{
		Storage: w.store, Environment: "test", Waiting: waiting,
		Copy: func(example *runlane.Run) {
			w.run = example
			w.load(w.template(), "waiting", waiting)
		},
	})
	w.checked()
}
