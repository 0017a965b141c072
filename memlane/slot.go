package memlane

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// partitionKey is what a limit counts: the runs of one concurrency key, or of the whole queue where runs have none.
type partitionKey struct {
	queue runlane.QueueName
	key   string
}

// partition has the runs that hold slots of one partition and those that want one. Slots need no numbers here: the lock
// makes counting exact. Limits are not stored: each command has the one in force.
type partition struct {
	// holders are runs with a slot: held while the run is running, reserved while it is queued. A reservation that is
	// over stays until its slot is taken or its run changes; it counts for nothing.
	holders []*entry
	// wanting are the runs of the partition that want a slot now or from a known time on, in the order of these times.
	wanting ordered
	// offered are those of them that were offered to a caller that freed a slot, and have not changed since.
	offered []item
}

func (e *entry) partitionKey() partitionKey {
	return partitionKey{e.created.Queue, e.created.ConcurrencyKey}
}

// owned reports whether a worker owns the run, even if the worker has died.
func (e *entry) owned() bool {
	return e.unpacked != nil && e.state.Status.Owned()
}

// occupies reports whether the run takes up capacity at now. The slot of an owned run does so until a commit frees it,
// not only until a time.
func (e *entry) occupies(now embedded.Millis) bool {
	return e.slot != nil && (e.owned() || now < e.state.DispatchExpiresAt)
}

// reservationOver reports whether the run had a reservation and has none at now, because it ran out or another run took
// the slot.
func (e *entry) reservationOver(now embedded.Millis) bool {
	return e.state.DispatchExpiresAt != embedded.Absent && !e.occupies(now)
}

// occupied counts. p may be nil.
func (p *partition) occupied(now embedded.Millis) int {
	n := 0
	if p != nil {
		for _, e := range p.holders {
			if e.occupies(now) {
				n++
			}
		}
	}
	return n
}

// takeSlot gives the run a slot, the one it has or another, and reports whether there was one. The slot of another
// run's expired reservation is taken only if no other slot is left: that run's worker may still claim it, if its clock
// is behind.
func (env *environment) takeSlot(e *entry, limit int, now embedded.Millis) bool {
	if e.occupies(now) {
		return true
	}
	p := env.partition(e.partitionKey())
	if p.occupied(now) >= limit {
		return false
	}
	env.freeSlot(e)
	for len(p.holders) >= limit {
		over := -1
		for i, other := range p.holders {
			if !other.occupies(now) &&
				(over < 0 || other.state.DispatchExpiresAt < p.holders[over].state.DispatchExpiresAt) {
				over = i
			}
		}
		if over < 0 {
			break // a limit that was lowered: more runs than it allows, all of them counted above
		}
		env.freeSlot(p.holders[over])
	}
	p = env.partition(e.partitionKey()) // the old one may have been dropped as empty
	p.holders = append(p.holders, e)
	e.slot = p
	return true
}

// freeSlot takes the run's slot away, if it has one.
func (env *environment) freeSlot(e *entry) {
	p := e.slot
	if p == nil {
		return
	}
	e.slot = nil
	p.holders = slices.DeleteFunc(p.holders, func(other *entry) bool { return other == e })
	env.forget(e.partitionKey())
}

// settleSlot is called after a commit: only a running or a reserved run keeps a slot.
func (env *environment) settleSlot(e *entry) {
	if !e.known().HoldsSlot() {
		env.freeSlot(e)
	}
}

// partition returns a partition, which begins empty.
func (env *environment) partition(key partitionKey) *partition {
	p := env.partitions[key]
	if p == nil {
		p = &partition{}
		if env.partitions == nil {
			env.partitions = map[partitionKey]*partition{}
		}
		env.partitions[key] = p
	}
	return p
}

// forget drops a partition that no run uses: there may be one for each of a million customers.
func (env *environment) forget(key partitionKey) {
	if p := env.partitions[key]; p != nil && len(p.holders) == 0 && p.wanting.size == 0 {
		delete(env.partitions, key)
	}
}

// limit starts keeping the partitions of a queue. The first call for a queue reads all active runs once. Queues that
// never had a limit cost nothing.
func (env *environment) limit(queue runlane.QueueName) {
	if env.limited[queue] {
		return
	}
	if env.limited == nil {
		env.limited = map[runlane.QueueName]bool{}
	}
	env.limited[queue] = true
	for _, set := range env.lists(&choice{of: active, queue: queue}) {
		for _, block := range set.blocks {
			for _, i := range block {
				env.reindexWants(i.entry)
			}
		}
	}
}

// reindexWants is called after every change of a run. It does something only if the queue ever had a limit.
func (env *environment) reindexWants(e *entry) {
	if !env.limited[e.created.Queue] {
		return
	}
	if p := env.partitions[e.partitionKey()]; p != nil {
		p.offered = slices.DeleteFunc(p.offered, func(i item) bool { return i.entry == e })
	}
	to := place{}
	if since, ok := e.outbox.WantsSlot(e.known()); ok {
		to = place{&env.partition(e.partitionKey()).wanting, since}
	}
	e.wants.move(e, to)
	if to.set == nil {
		env.forget(e.partitionKey())
	}
}

// slotHolders are the runs with a slot in the partition of e, in the order in which they took it.
func (env *environment) slotHolders(e *entry) []runlane.RunID {
	p := env.partitions[e.partitionKey()]
	if p == nil {
		return nil
	}
	var ids []runlane.RunID
	for _, holder := range p.holders {
		ids = append(ids, holder.id)
	}
	return ids
}
