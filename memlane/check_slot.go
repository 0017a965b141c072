package memlane

import (
	"cmp"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
)

// ruleSlots does not compare slots with limits, because none is stored: each commit is checked against the limit in
// its command.
const ruleSlots = "a slot's holder is running or reserved and names its partition; no run holds two; a run that " +
	"waits for one is indexed"

func (env *environment) partitionKeys() []partitionKey {
	return slices.SortedFunc(maps.Keys(env.partitions), func(a, b partitionKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.key, b.key))
	})
}

func (env *environment) checkSlots(broken func(id runlane.RunID, format string, args ...any)) {
	seen := map[*entry]bool{}
	for _, key := range env.partitionKeys() {
		p := env.partitions[key]
		if len(p.holders) == 0 && p.wanting.size == 0 {
			broken("", "an empty partition of queue %q is kept", key.queue)
		}
		for _, e := range p.holders {
			switch {
			case env.run(e.id) != e || e.partitionKey() != key:
				broken(e.id, "it holds a slot where it does not belong")
			case e.slot != p:
				broken(e.id, "it holds a slot that it does not name")
			case !e.known().HoldsSlot():
				broken(e.id, "a %s run holds a slot", e.state.Status)
			case seen[e]:
				broken(e.id, "it holds two slots")
			}
			seen[e] = true
		}
	}
}

// checkSlot checks the run's slot and its place among the runs that want one.
func (env *environment) checkSlot(e, known *entry, run *runlane.Run, broken func(format string, args ...any)) {
	p := env.partitions[known.partitionKey()]
	if known.slot != nil && (known.slot != p || !slices.Contains(p.holders, e)) {
		broken("it names a slot that it does not hold")
	}
	to := place{}
	if since, ok := known.outbox.WantsSlot(known.known()); ok && env.limited[run.Queue] {
		if p == nil {
			broken("its partition is gone")
			return
		}
		to = place{&p.wanting, since}
	}
	if known.wants != to {
		broken("it waits for a slot from %s, not where it should", known.wants.at.Time())
	} else if to.set != nil {
		if _, _, ok := to.set.find(item{to.at, e}); !ok {
			broken("the index of runs that wait for a slot does not hold it")
		}
	}
}
