package main

import "time"

// clock is virtual time with what is to happen in it. Events of one instant happen in the order in which they were
// asked for, so that equal seeds give equal worlds.
type clock struct {
	now    time.Duration
	events heap[event, *event]
	asked  uint64
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// after asks for something to happen in a while.
func (c *clock) after(wait time.Duration, do func()) {
	c.asked++
	c.events.push(event{at: c.now + max(wait, 0), order: c.asked, do: do})
}

// run lets happen what is asked for until an instant, or until nothing is, or until enough says so.
func (c *clock) run(until time.Duration, enough func() bool) {
	for len(c.events.items) > 0 && c.events.items[0].at <= until && (enough == nil || !enough()) {
		next := c.events.pop()
		c.now = next.at
		next.do()
	}
}
