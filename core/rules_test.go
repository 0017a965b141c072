package core

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

func TestRules_KeepWhatTheOutcomeNeedsBeforeADeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	for _, c := range []struct{ left, handler time.Duration }{
		{3 * time.Second, time.Second},
		{30 * time.Second, 28 * time.Second},
		{40 * time.Second, 38 * time.Second},
		{900 * time.Second, 855 * time.Second},
	} {
		r := newRules(&DeliveryOptions{Deadline: now.Add(c.left)}, 0, clock)
		left, bounded := r.handlerTime(clock)
		if !bounded || left != c.handler {
			t.Errorf("%s before the deadline the handler has %s, want %s", c.left, left, c.handler)
		}
		if end := r.leaseEnd(now).Sub(now); end != c.left+5*time.Second {
			t.Errorf("%s before the deadline the lease takes %s", c.left, end)
		}
		if r.unwind() > (c.left-c.handler)/2 {
			t.Errorf("%s before the deadline a handler may take %s to return", c.left, r.unwind())
		}
	}
	for invocation, want := range map[time.Duration]time.Duration{
		time.Second: 0, 30 * time.Second: 27 * time.Second, time.Minute: 56 * time.Second, 2 * time.Minute: 113 * time.Second,
		5 * time.Minute: 284 * time.Second, 10 * time.Minute: 569 * time.Second, 15 * time.Minute: 854 * time.Second,
	} {
		if got := LongestTimeout(invocation); got != want {
			t.Errorf("invocations of %s fit a timeout of %s, want %s", invocation, got, want)
		}
	}
	r := newRules(&DeliveryOptions{}, 0, clock)
	if _, bounded := r.handlerTime(clock); bounded || r.leaseEnd(now).Sub(now) != runlane.DefaultLease {
		t.Errorf("without a deadline the rules are %+v", r)
	}
}
