package memlane

import (
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// partitionKey identifies the runs that a limit counts: those with one concurrency key, or the whole queue for runs
// without keys.
type partitionKey struct {
	queue runlane.QueueName
	key   string
}

// partition tracks the slots of one partition. They need no numbers: the lock makes counting exact. Limits are not
// stored: each command carries the one in force.
type partition struct {
	// holders are runs with a slot: running or reserved. An expired reservation stays until its slot is taken or its
	// run changes, but does not count.
	holders []*entry
	// wanting are runs that want a slot now or later, by when: those without a priority, then a list for each priority.
	wanting     ordered
	prioritized map[int]*ordered
	// offered are unchanged runs of wanting that were offered to a caller that freed a slot.
	offered []ranked
}

func (e *entry) partitionKey() partitionKey {
	return partitionKey{e.created.Queue, e.created.ConcurrencyKey}
}

// owned reports whether a worker owns the run, dead or alive.
func (e *entry) owned() bool {
	return e.unpacked != nil && e.state.Status.Owned()
}

// occupies reports whether the run uses capacity at now. An owned run does until a commit frees its slot.
func (e *entry) occupies(now embedded.Millis) bool {
	return e.slot != nil && (e.owned() || now < e.state.DispatchExpiresAt)
}

// reservationOver reports whether the run's reservation has expired at now or another run took the slot. The ticket of
// a queue without slots cannot be taken.
func (env *environment) reservationOver(e *entry, now embedded.Millis) bool {
	if e.slot == nil && env.paces[e.partitionKey()] != nil && now < e.state.DispatchExpiresAt {
		return false
	}
	return e.state.DispatchExpiresAt != embedded.Absent && !e.occupies(now)
}

// occupied counts used slots. p may be nil.
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

// takeSlot returns false if no slot is free. It takes the slot of an expired reservation last: that run's worker may
// still claim it if its clock is behind.
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
			break // the limit was lowered below the number of holders, which all count
		}
		env.freeSlot(p.holders[over])
	}
	p = env.partition(e.partitionKey()) // freeSlot may have dropped it as empty
	p.holders = append(p.holders, e)
	e.slot = p
	return true
}

func (env *environment) freeSlot(e *entry) {
	p := e.slot
	if p == nil {
		return
	}
	e.slot = nil
	p.holders = slices.DeleteFunc(p.holders, func(other *entry) bool { return other == e })
	env.forget(e.partitionKey())
}

// settleSlot frees the slot of a run that is neither owned nor reserved after a commit.
func (env *environment) settleSlot(e *entry) {
	if !e.known().HoldsSlot() {
		env.freeSlot(e)
	}
}

// partition returns a partition. It is created if missing.
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

// waiting returns the list of wanting for a priority. It is created if missing.
func (p *partition) waiting(priority int) *ordered {
	if priority == 0 {
		return &p.wanting
	}
	set := p.prioritized[priority]
	if set == nil {
		if p.prioritized == nil {
			p.prioritized = map[int]*ordered{}
		}
		set = &ordered{precedence: embedded.Precedence(priority)}
		p.prioritized[priority] = set
	}
	return set
}

// lines are the lists of wanting.
func (p *partition) lines() []*ordered {
	return slices.AppendSeq([]*ordered{&p.wanting}, maps.Values(p.prioritized))
}

func (p *partition) wanted() bool {
	for _, set := range p.prioritized {
		if set.size > 0 {
			return true
		}
	}
	return p.wanting.size > 0
}

// forget drops an unused partition: there may be one for each of a million customers.
func (env *environment) forget(key partitionKey) {
	if p := env.partitions[key]; p != nil && len(p.holders) == 0 && !p.wanted() {
		delete(env.partitions, key)
	}
}

// limit starts tracking the partitions of a queue. The first call for a queue reads all its active runs. Queues
// without a limit cost nothing.
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

// reindexWants must follow every change of a run in a queue that was ever limited.
func (env *environment) reindexWants(e *entry) {
	if !env.limited[e.created.Queue] {
		return
	}
	if p := env.partitions[e.partitionKey()]; p != nil {
		p.offered = slices.DeleteFunc(p.offered, func(r ranked) bool { return r.entry == e })
	}
	to := place{}
	if since, ok := e.outbox.WantsSlot(e.known()); ok {
		to = place{env.partition(e.partitionKey()).waiting(e.created.Priority), since}
	}
	e.wants.move(e, to)
	if to.set == nil {
		env.forget(e.partitionKey())
	}
}

// slotHolders returns the runs with a slot in e's partition, in the order in which they took it.
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
