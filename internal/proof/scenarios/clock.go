package scenarios

import (
	"sync"
	"testing"
	"time"
)

// Clock is a clock that a test sets: pass its Now as core.World.Now. Storages judge what is due by the instants in
// commands, so hours pass without waiting. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	passed func(d time.Duration) // nil: time passes for this clock alone
}

// NewClock returns a clock that shows the given instant.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now is the instant that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock, also backwards, and returns the instant that it shows then.
func (c *Clock) Advance(d time.Duration) time.Time {
	if c.passed != nil {
		c.passed(d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// indexLag is longer than an index is late.
const indexLag = 5 * time.Second

// passed lets an index catch up if that much time passes; nil if no index is late.
func (h Harness) passed(t testing.TB) func(time.Duration) {
	if h.Settle == nil {
		return nil
	}
	return func(d time.Duration) {
		if d >= indexLag {
			h.Settle(t)
		}
	}
}

// late reports whether indexes are late.
func (s *scene) late() bool { return s.clock.passed != nil }

// settle lets indexes catch up: what follows is about what they show, and not about when.
func (s *scene) settle() {
	if s.late() {
		s.clock.passed(indexLag)
	}
}

// tickLate ticks once more where indexes are late: the stages of a tick, and processes that hand slots over, do not see
// the latest writes yet.
func (s *scene) tickLate() {
	s.Helper()
	if s.late() {
		s.settle()
		s.tick()
	}
}
