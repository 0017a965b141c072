package core

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func listedAt(id runlane.RunID, sequence int64) *lane.RunRef {
	return &lane.RunRef{RunKey: lane.RunKey{RunID: id}, Sequence: sequence}
}

// A run is judged while its queue is full; the attempt that had the slot ends and hands it over; then the first one's
// pass is recorded. It must not be passed over for the rest of a drain: random lives found that once in 500,000.
func TestPoller_RoomThatWasMadeMeanwhile_IsNotPassedOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		full, endedMeanwhile, tried bool
	}{
		"full, and an attempt ended meanwhile": {true, true, true},
		"full all the time":                    {true, false, false},
		"no handler":                           {false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &poller{
				worker: &worker{options: WorkOptions{Drain: true}},
				busy:   map[runlane.RunID]struct{}{},
				passed: map[runlane.RunID]passed{},
			}
			waits, holds := listedAt("waits", 2), listedAt("holds", 2)
			if !p.reserve(waits) || !p.reserve(holds) {
				t.Fatal("both are new")
			}
			before := p.endedSoFar()
			if tc.endedMeanwhile {
				p.release("holds", true)
			}
			p.release("waits", false)
			p.pass(waits, tc.full, before)
			if got := p.reserve(waits); got != tc.tried {
				t.Errorf("tried again: %t, want %t", got, tc.tried)
			}
		})
	}
}

// A list is read, a run of it executes and suspends, and then its place in the list is looked at: it leads to nothing. What
// it waits for happens, and it is due anew: a drain that still passed over it would end without it.
func TestPoller_RunThatIsDueAnew_IsNotPassedOver(t *testing.T) {
	t.Parallel()
	p := &poller{
		worker: &worker{options: WorkOptions{Drain: true}},
		busy:   map[runlane.RunID]struct{}{},
		passed: map[runlane.RunID]passed{},
	}
	stale, anew := listedAt("suspends", 2), listedAt("suspends", 7)
	if !p.reserve(stale) {
		t.Fatal("it is new")
	}
	p.release("suspends", false)
	p.pass(stale, false, p.endedSoFar())
	if p.reserve(stale) || !p.knows(stale) {
		t.Error("what led to nothing is tried again")
	}
	if p.knows(anew) || !p.reserve(anew) {
		t.Error("a run that has moved on is passed over")
	}
}
