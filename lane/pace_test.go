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

// A lower burst stops no partition for longer than an interval. Two policies that live at once give each other no burst.
func TestPace_AChangedPolicyNeitherStopsNorRenewsTheBurst(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(9_000_000).UTC()
	before := runlane.Queue{Rate: runlane.PerHour(1), Burst: 10}
	for q, want := range map[runlane.Queue]time.Duration{
		{Rate: runlane.PerHour(1)}:    time.Hour,
		{Rate: runlane.PerSecond(10)}: 100 * time.Millisecond,
	} {
		var pace lane.Pace
		for range 10 {
			pace.Ticket(before, at, at.Add(lane.TicketsAhead))
			pace.Start(before, at)
		}
		ticket := pace
		if again, ok := pace.Start(q, at); ok || again.Sub(at) != want {
			t.Errorf("%s: again after %s (%v), not %s", q.Rate, again.Sub(at), ok, want)
		}
		if start, ok := ticket.Ticket(q, at.Add(want), at.Add(want)); !ok {
			t.Errorf("%s: no ticket before %s", q.Rate, start.Sub(at))
		}
	}

	slow, fast := runlane.Queue{Rate: runlane.PerMinute(1)}, runlane.Queue{Rate: runlane.PerSecond(10), Burst: 10}
	var pace lane.Pace
	starts := 0
	for range 100 {
		pace.Ticket(slow, at, at.Add(lane.TicketsAhead))
		if _, ok := pace.Start(fast, at); ok {
			starts++
		}
	}
	if starts != fast.Burst {
		t.Errorf("%d starts in an instant, not %d", starts, fast.Burst)
	}
}

// A reservation of another policy, which lasted longer, is no ticket for its end.
func TestTicketTime_IsNotFurtherAheadThanTickets(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(9_000_000).UTC()
	run := &runlane.Run{Status: runlane.StatusQueued, DispatchedAt: at, DispatchExpiresAt: at.Add(time.Hour)}
	if got := lane.TicketTime(run, runlane.Queue{Rate: runlane.PerSecond(1)}); got.After(at.Add(lane.TicketsAhead)) {
		t.Errorf("a ticket after %s", got.Sub(at))
	}
}
