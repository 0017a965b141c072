package core

import (
	"testing"

	"github.com/runlane/runlane-go"
)

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
			if !p.reserve("waits") || !p.reserve("holds") {
				t.Fatal("both are new")
			}
			before := p.endedSoFar()
			if tc.endedMeanwhile {
				p.release("holds", true)
			}
			p.release("waits", false)
			p.pass("waits", tc.full, before)
			if got := p.reserve("waits"); got != tc.tried {
				t.Errorf("tried again: %t, want %t", got, tc.tried)
			}
		})
	}
}
