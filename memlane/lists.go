package memlane

import (
	"slices"

	"github.com/runlane/runlane-go"
)

// group identifies the runs of a task in a queue that have the same priority.
type group struct {
	queue    runlane.QueueName
	task     runlane.TaskID
	priority int
}

// lists are runs by kind, ordered by [embedded.State.Due].
type lists map[kind]*ordered

// kind is the index of a status in statuses, and for waiting runs a bit for each of waitingKinds.
type kind struct{ status, waits byte }

var (
	statuses     = runlane.Statuses()
	waitingKinds = runlane.WaitingKinds()
)

// kindOf returns known = false for an unknown status.
func kindOf(s runlane.Status, waiting *runlane.Waiting) (of kind, known bool) {
	n := slices.Index(statuses, s)
	if n < 0 {
		return kind{}, false
	}
	of.status = byte(n)
	if waiting != nil && s.Waiting() {
		for bit, what := range waitingKinds {
			if waiting.Has(what) {
				of.waits |= 1 << bit
			}
		}
	}
	return of, true
}

func (k kind) is() runlane.Status { return statuses[k.status] }

// waitsFor reports whether the kind includes that wait; "" matches every kind.
func (k kind) waitsFor(what runlane.WaitingFor) bool {
	bit := slices.Index(waitingKinds, what)
	return what == "" || bit >= 0 && k.waits>>bit&1 == 1
}

// of returns the list of a kind. It is created if missing.
func (l lists) of(k kind) *ordered {
	set := l[k]
	if set == nil {
		set = &ordered{kind: k}
		l[k] = set
	}
	return set
}

func (ix *indexes) group(e *entry) lists {
	c := e.created
	ix.prioritized = ix.prioritized || c.Priority != 0
	return listsAt(&ix.groups, group{c.Queue, c.TaskID, c.Priority})
}

func listsAt[K comparable](all *map[K]lists, key K) lists {
	found := (*all)[key]
	if found == nil {
		if *all == nil {
			*all = map[K]lists{}
		}
		found = lists{}
		(*all)[key] = found
	}
	return found
}

// moveDue moves the run to another list, or to none, also in the lists by schedule and by source run.
func (e *entry) moveDue(to place) {
	from := e.due
	if from == to {
		return
	}
	e.due.move(e, to)
	created, ix := e.view().created, &e.shard.indexes
	if id := created.Source.ScheduleID; id != "" {
		bySchedule := listsAt(&ix.schedules, id)
		if from.set != nil {
			bySchedule.of(from.set.kind).remove(item{from.at, e})
		}
		if to.set != nil {
			bySchedule.of(to.set.kind).insert(item{to.at, e})
		}
	}
	source := created.Source.RunID
	switch {
	case source == "":
	case to.set == nil:
		if delete(ix.sources[source], e); len(ix.sources[source]) == 0 {
			delete(ix.sources, source)
		}
	case from.set == nil:
		if ix.sources == nil {
			ix.sources = map[runlane.RunID]map[*entry]struct{}{}
		}
		if ix.sources[source] == nil {
			ix.sources[source] = map[*entry]struct{}{}
		}
		ix.sources[source][e] = struct{}{}
	}
}

// listedBySource reports whether the lists by schedule and by source run contain the run.
func (e *entry) listedBySource(created *runlane.RunCreated) bool {
	ix := &e.shard.indexes
	if id := created.Source.ScheduleID; id != "" {
		set := ix.schedules[id][e.due.set.kind]
		if set == nil {
			return false
		}
		if _, _, ok := set.find(item{e.due.at, e}); !ok {
			return false
		}
	}
	_, ok := ix.sources[created.Source.RunID][e]
	return ok || created.Source.RunID == ""
}

// choice selects lists.
type choice struct {
	of       func(kind) bool
	queue    runlane.QueueName // "": all
	task     runlane.TaskID    // "": all
	schedule runlane.ScheduleID
	source   runlane.RunID
	wants    func(runlane.QueueName) bool // nil: all
}

func ofStatus(wanted ...runlane.Status) func(kind) bool {
	return func(k kind) bool { return slices.Contains(wanted, k.is()) }
}

func active(k kind) bool { return k.is().Active() }

// lists returns the nonempty lists of all shards that may contain chosen runs, and few others.
func (env *environment) lists(by *choice) []*ordered {
	var found []*ordered
	add := func(all lists) {
		for k, set := range all {
			if set.size > 0 && by.of(k) {
				found = append(found, set)
			}
		}
	}
	for n := range env.shards {
		switch ix := &env.shards[n].indexes; {
		case by.source != "":
			add(byKind(ix.sources[by.source]))
		case by.schedule != "":
			add(ix.schedules[by.schedule])
		case by.queue != "" && by.task != "" && !ix.prioritized:
			add(ix.groups[group{queue: by.queue, task: by.task}])
		default:
			for g, all := range ix.groups {
				if (by.queue == "" || by.queue == g.queue) && (by.task == "" || by.task == g.task) &&
					(by.wants == nil || by.wants(g.queue)) {
					add(all)
				}
			}
		}
	}
	return found
}

func byKind(runs map[*entry]struct{}) lists {
	all := lists{}
	for e := range runs {
		all.of(e.due.set.kind).insert(item{e.due.at, e})
	}
	return all
}
