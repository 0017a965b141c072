package lane

import "time"

// Near is the optional ability of a storage whose reads cost so little that workers tick more often than once a minute,
// and make the runs of their schedules at their times. Found with [As].
type Near interface {
	// TickEvery is about how long a worker waits between two ticks: more than 0, and less than a minute.
	TickEvery() time.Duration
}
