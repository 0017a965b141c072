package runlanetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

type clock interface {
	now() time.Time
	// moveTo has one caller at a time and never gets a past time.
	moveTo(at time.Time)
}

// drivenClock stands still between calls of moveTo.
type drivenClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *drivenClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *drivenClock) moveTo(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at.UTC()
}

// bubbleClock is the clock of a synctest bubble, where waiting takes no time.
type bubbleClock struct{}

func (bubbleClock) now() time.Time { return time.Now() }

func (bubbleClock) moveTo(at time.Time) { <-time.After(time.Until(at)) }

// counted returns a world without randomness: IDs are counted, and every random number is the middle one, so jitter is
// 0.
func counted(now func() time.Time) *core.World {
	var mu sync.Mutex
	made := map[string]int{}
	return &core.World{
		Now:  now,
		Rand: func() uint64 { return 1 << 63 },
		NewID: func(prefix string) string {
			mu.Lock()
			defer mu.Unlock()
			made[prefix]++
			return fmt.Sprintf("%s%06d", prefix, made[prefix])
		},
	}
}

func since(from, to time.Time) string { return "+" + runlane.FormatDuration(to.Sub(from)) }
