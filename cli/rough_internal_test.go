package cli

import (
	"testing"
	"time"
)

// A moment that is as good as three days away is not two days away.
func TestAgo_RoundsToTheNearest(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := newSession(nil, &Options{Args: []string{}, Now: func() time.Time { return now }})
	for ahead, want := range map[time.Duration]string{
		3*day - time.Second:        "in 3d",
		2*day + 11*time.Hour:       "in 2d",
		day - time.Minute:          "in 1d",
		23*time.Hour + time.Minute: "in 23h",
		time.Hour - time.Second:    "in 1h",
		90 * time.Minute:           "in 2h",
		time.Minute - 1:            "in 1m",
		59 * time.Second:           "in 59s",
		time.Millisecond:           "in 1s",
		0:                          "now",
		-time.Second:               "1s ago",
		-(2*time.Minute - 1):       "2m ago",
		-3*day + time.Second:       "3d ago",
	} {
		if got := s.ago(now.Add(ahead)); got != want {
			t.Errorf("%s: %q, want %q", ahead, got, want)
		}
	}
}
