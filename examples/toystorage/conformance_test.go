package toystorage

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

func TestStorage_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New:               func(testing.TB) lane.Storage { return New() },
		Capabilities:      lane.StorageCapabilities{ProcessLocalState: true, ReadsRunHistory: true},
		PlantUnknownEvent: plant,
	})
}

// plant appends what a newer version of the engine would have written.
func plant(_ testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent) {
	toy := s.(*Storage)
	toy.mu.Lock()
	defer toy.mu.Unlock()
	stored := toy.runs[key]
	sequence := stored.run.EventSequence + 1
	run := stored.run.Clone()
	run.EventSequence = sequence
	toy.runs[key] = record{run: run, events: append(stored.events, runlane.EventRecord{
		ID: "planted", Sequence: sequence,
		Event: runlane.Event{RunID: key.RunID, Environment: key.Environment, OccurredAt: run.UpdatedAt, Body: &event},
	})}
}
