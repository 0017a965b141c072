// Package scenarios proves what package core promises, sentence by sentence, over any lane: with [Run], and with
// [RunUnderFaults] while calls go wrong. [RunFairness] proves that many runs of one concurrency key do not delay
// another.
package scenarios

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Harness says how to run the runtime's scenarios over a lane.
type Harness struct {
	// NewLane returns a lane for one scenario, which uses a separate environment: lanes may share a table. Required.
	NewLane func(t testing.TB) *lane.Lane
	// Virtual says that the lane lives in memory alone, without I/O: scenarios that are about timers then run too, in a
	// bubble of testing/synctest where an hour takes no time. NewLane is called inside.
	Virtual bool
	// Settle is for storages that show writes late: it waits until all writes so far show. Scenarios call it where
	// their virtual clock advances by more than the delay of an index. What has to follow a write at once, scenarios
	// wait for without it. nil: writes show at once.
	Settle func(t testing.TB)

	faults *sceneFaults // of one scenario; nil: nothing goes wrong on purpose
	waits  *sync.Map    // core.Wait that were explained
}

// scenario is one row of the table: a sentence and its proof.
type scenario struct {
	name  string
	needs func(lane.StorageCapabilities) bool // nil: nothing special
	prove func(t *testing.T, h Harness)
	// virtual scenarios are about timers, and run only where time is virtual.
	virtual bool
}

// scenarioGroup is a part of the table.
type scenarioGroup struct {
	name      string
	scenarios []scenario
}

// scenarioTable is all of it.
func scenarioTable() []scenarioGroup {
	return []scenarioGroup{
		{"Trigger", append(triggerScenarios(), debounceScenarios()...)},
		{"Start", startScenarios()},
		{"Delivery", deliveryScenarios()},
		{"Ordered", orderedScenarios()},
		{"Outcome", outcomeScenarios()},
		{"Publish", publishScenarios()},
		{"Tick", tickScenarios()},
		{"Queues", append(queueScenarios(), rateScenarios()...)},
		{"Pauses", slices.Concat(pauseScenarios(), pauseRaceScenarios())},
		{"Stats", statsScenarios()},
		{"Rules", ruleScenarios()},
		{"Schedules", scheduleScenarios()},
		{"Steps", stepScenarios()},
		{"Memory", memoryScenarios()},
		{"Operate", operateScenarios()},
		{"Work", workScenarios()},
		{"Clients", clientScenarios()},
		{"Signals", signalScenarios()},
		{"Calls", callScenarios()},
		{"Flows", flowScenarios()},
	}
}

// applies reports whether the lane can show the scenario.
func (s *scenario) applies(h Harness, c lane.StorageCapabilities) bool {
	return (s.needs == nil || s.needs(c)) && (!s.virtual || h.Virtual)
}

// Run proves what package core promises, over any lane: one subtest for each promise. Authors of adapters call it as
// lanetest.RunRuntime. [RunUnderFaults] is the same while calls go wrong.
func Run(t *testing.T, h Harness) {
	t.Helper()
	capabilities := h.NewLane(t).Storage.Capabilities()
	h.waits = &sync.Map{}
	t.Cleanup(func() { everyWait(t, h, capabilities) })
	for _, group := range scenarioTable() {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range group.scenarios {
				if !s.applies(h, capabilities) {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					if s.virtual {
						synctest.Test(t, func(t *testing.T) { s.prove(t, h) })
						return
					}
					s.prove(t, h)
				})
			}
		})
	}
}

// everyWait demands that a run of every wait was explained, where the storage can show all of them.
func everyWait(t *testing.T, h Harness, c lane.StorageCapabilities) {
	t.Helper()
	if t.Failed() || !needsBoth(needsSlots, needsDeadLetters)(c) || !needsRedelivery(c) {
		return
	}
	if pattern := flag.Lookup("test.run"); pattern != nil && strings.Contains(pattern.Value.String(), "/") {
		return // a part of the table was asked for
	}
	for _, wait := range core.Waits() {
		if _, explained := h.waits.Load(wait); !explained {
			t.Errorf("no scenario explains the wait %q", wait)
		}
	}
}
