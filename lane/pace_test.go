package lane_test

import (
	"testing"
	"testing/quick"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// No window has more starts than rate × window + burst, whatever the times of the askers are: their clocks differ.
func TestPace_NoWindowHasMoreStartsThanTheRateAndTheBurst(t *testing.T) {
	t.Parallel()
	check := func(asks []uint16, burst, count uint8) bool {
		q := runlane.Queue{Rate: runlane.PerMinute(int(count)%100 + 1), Burst: int(burst)%8 + 1}
		began := time.UnixMilli(1_000_000).UTC()
		var pace lane.Pace
		var starts []time.Time
		for _, ask := range asks {
			at := began.Add(time.Duration(ask) * time.Millisecond)
			if again, ok := pace.Start(q, at); ok {
				starts = append(starts, at)
			} else if _, ok := pace.Start(q, again); !ok {
				return false
			} else {
				starts = append(starts, again)
			}
		}
		for _, from := range starts {
			for _, to := range starts {
				n := 0
				for _, s := range starts {
					if !s.Before(from) && !s.After(to) {
						n++
					}
				}
				if to.Sub(from) >= 0 && n > int(to.Sub(from)*time.Duration(q.Rate.Count)/q.Rate.Period)+q.Burst {
					return false
				}
			}
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

func TestPace_TicketsAreOneIntervalApartAfterTheBurst(t *testing.T) {
	t.Parallel()
	q := runlane.Queue{Rate: runlane.PerSecond(2), Burst: 2}
	began := time.UnixMilli(5_000).UTC()
	var pace lane.Pace
	if n := pace.Tickets(q, began, began.Add(time.Second)); n != 4 {
		t.Errorf("%d tickets, not 4", n)
	}
	for n, want := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
		if start, ok := pace.Ticket(q, began, began.Add(time.Second)); !ok || start.Sub(began) != want {
			t.Errorf("ticket %d: %s %v, not %s", n, start.Sub(began), ok, want)
		}
	}
	if start, ok := pace.Ticket(q, began, began.Add(time.Second)); ok {
		t.Errorf("a ticket beyond the horizon, at %s", start)
	}
}

// A partition at one start an hour is not stopped for an hour when its queue gets a higher rate.
func TestPace_AHigherRateAppliesToWhatWasCountedBefore(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(9_000).UTC()
	var pace lane.Pace
	pace.Start(runlane.Queue{Rate: runlane.PerHour(1)}, at)
	again, ok := pace.Start(runlane.Queue{Rate: runlane.PerSecond(10)}, at)
	if ok || again.Sub(at) != 100*time.Millisecond {
		t.Errorf("again after %s (%v), not 100 ms", again.Sub(at), ok)
	}
}
