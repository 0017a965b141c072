package memlane

import (
	"cmp"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

func (env *environment) partitionKeys() []partitionKey {
	return slices.SortedFunc(maps.Keys(env.partitions), func(a, b partitionKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.key, b.key))
	})
}

func (env *environment) checkSlots(found *embedded.Violations) {
	seen := map[*entry]bool{}
	for _, key := range env.partitionKeys() {
		p := env.partitions[key]
		if len(p.holders) == 0 && !p.wanted() {
			found.Add("", embedded.RuleSlots, "an empty partition of queue %q is kept", key.queue)
		}
		for _, e := range p.holders {
			switch {
			case env.run(e.id) != e || e.partitionKey() != key:
				found.Add(e.id, embedded.RuleSlots, "it holds a slot where it does not belong")
			case e.slot != p:
				found.Add(e.id, embedded.RuleSlots, "it holds a slot that it does not name")
			case !e.known().HoldsSlot():
				found.Add(e.id, embedded.RuleSlots, "a %s run holds a slot", e.state.Status)
			case seen[e]:
				found.Add(e.id, embedded.RuleSlots, "it holds two slots")
			}
			seen[e] = true
		}
	}
}

// checkSlot checks the run's slot and its place among the runs that want one.
func (env *environment) checkSlot(e, known *entry, run *runlane.Run, found *embedded.Violations) {
	p := env.partitions[known.partitionKey()]
	if known.slot != nil && (known.slot != p || !slices.Contains(p.holders, e)) {
		found.Add(e.id, embedded.RuleSlots, "it names a slot that it does not hold")
	}
	to := place{}
	if since, ok := known.outbox.WantsSlot(known.known()); ok && env.limited[run.Queue] {
		if p == nil {
			found.Add(e.id, embedded.RuleSlots, "its partition is gone")
			return
		}
		to = place{p.waiting(known.created.Priority), since}
	}
	if known.wants != to {
		found.Add(e.id, embedded.RuleSlots, "it waits for a slot from %s, not where it should", known.wants.at.Time())
	} else if to.set != nil {
		if _, _, ok := to.set.find(item{to.at, e}); !ok {
			found.Add(e.id, embedded.RuleSlots, "the index of runs that wait for a slot does not hold it")
		}
	}
}
