package memlane

import (
	"context"
	"maps"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// pacesKept is how many paces are kept before those that are over are forgotten.
const pacesKept = 1024

// pace returns the pace of a partition. It is created if missing.
func (env *environment) pace(key partitionKey, at time.Time) *lane.Pace {
	if p := env.paces[key]; p != nil {
		return p
	}
	if len(env.paces) >= max(env.pacesLeft, pacesKept) {
		maps.DeleteFunc(env.paces, func(_ partitionKey, p *lane.Pace) bool { return p.Over(at) })
		env.pacesLeft = 2 * len(env.paces)
	}
	if env.paces == nil {
		env.paces = map[partitionKey]*lane.Pace{}
	}
	p := &lane.Pace{}
	env.paces[key] = p
	return p
}

// room is how many runs of a partition may get a slot and a ticket, or start now.
func (env *environment) room(key partitionKey, policy runlane.Queue, q *lane.DueQuery, starts bool) int {
	taken := 0
	if policy.Concurrency > 0 {
		taken = env.partitions[key].occupied(embedded.At(q.At))
	}
	return embedded.RoomFor(policy, taken, env.pacing(key), q.At, starts)
}

// pacing is the pace of a partition, for reading.
func (env *environment) pacing(key partitionKey) lane.Pace {
	if p := env.paces[key]; p != nil {
		return *p
	}
	return lane.Pace{}
}

// TakeTicket gives out the next start time of a partition.
func (s *Storage) TakeTicket(ctx context.Context, c *lane.TicketCommand) (start time.Time, ok bool, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return time.Time{}, false, err
	}
	h := s.lockAll()
	defer h.unlock()
	key := partitionKey{c.Queue.Name, c.ConcurrencyKey}
	start, ok = s.open(c.Environment).pace(key, c.At).Ticket(c.Queue, c.At, c.Until)
	return start, ok, nil
}
