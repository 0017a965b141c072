package reducer_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// BenchmarkProject folds the five events of a simple run in the three commands in which the runtime writes them: trigger, claim
// with start, outcome. One iteration is one run.
func BenchmarkProject(b *testing.B) {
	end := noon.Add(time.Minute)
	trigger := []runlane.Event{at(noon, created()), at(noon, delivery(noon))}
	claim := []runlane.Event{at(noon, claimed(end)), at(noon, started(1))}
	outcome := []runlane.Event{at(noon, &runlane.RunSucceeded{Attempt: 1})}
	b.ReportAllocs()
	for b.Loop() {
		run, err := reducer.Project(nil, 0, trigger...)
		if err != nil {
			b.Fatal(err)
		}
		if run, err = reducer.Project(run, 2, claim...); err != nil {
			b.Fatal(err)
		}
		if run, err = reducer.Project(run, 4, outcome...); err != nil {
			b.Fatal(err)
		}
		if run.Status != runlane.StatusSucceeded {
			b.Fatal(run.Status)
		}
	}
}

// TestProject_AllocatesOneRun holds the projection to one copy of the run and nothing else.
func TestProject_AllocatesOneRun(t *testing.T) {
	events := []runlane.Event{
		at(noon, created()), at(noon, delivery(noon)), at(noon, claimed(noon.Add(time.Minute))), at(noon, started(1)),
		at(noon, &runlane.RunSucceeded{Attempt: 1}),
	}
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := reducer.Project(nil, 0, events...); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 1 {
		t.Errorf("%v allocations for five events, want the run alone", allocations)
	}
}
