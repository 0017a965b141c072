package memlane

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// ruleIndexes is an invariant of this storage alone.
const ruleIndexes = "indexes hold what runs know about, in order, and nothing else"

// Check pages through the runs of an environment by ID and returns violated invariants. It reads everything under the
// lock: use it for tests and diagnosis.
func (s *Storage) Check(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("Check", q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return &runlane.Page[lane.Violation]{}, nil
	}
	found := &embedded.Violations{Environment: q.Environment}
	var next runlane.Cursor
	ids := env.ids()
	if after != nil {
		index, exact := slices.BinarySearch(ids, runlane.RunID(after.ID))
		if exact {
			index++
		}
		ids = ids[index:]
	} else {
		env.checkWhole(found)
	}
	for i, id := range ids {
		if i == limit {
			next = scope.Cursor(embedded.Position{ID: string(ids[i-1])})
			break
		}
		if err := env.checkRun(env.run(id), found); err != nil {
			return nil, err
		}
	}
	return &runlane.Page[lane.Violation]{Items: found.Items, Next: next}, nil
}

func (env *environment) checkWhole(found *embedded.Violations) {
	runs := env.lists(&choice{of: func(kind) bool { return true }})
	deliveries := env.sets(func(ix *indexes) []*ordered {
		return []*ordered{&ix.unpublished, &ix.redeliveries, &ix.dead}
	})
	undelivered := env.sets(func(ix *indexes) []*ordered { return []*ordered{&ix.undelivered} })
	others := slices.Concat(deliveries, undelivered)
	for _, key := range env.partitionKeys() {
		others = append(others, env.partitions[key].lines()...)
	}
	total := 0
	for n, set := range append(runs, others...) {
		var previous *position
		size := 0
		for w := ascend([]*ordered{set}, nil); ; w.advance() {
			next, ok := w.peek()
			if !ok {
				break
			}
			size++
			here := next.position()
			if previous != nil && previous.compare(here) >= 0 {
				found.Add(next.entry.id, ruleIndexes, "index %d is out of order", n)
			}
			previous = &here
			known := next.entry.due
			switch {
			case n >= len(runs)+len(deliveries)+len(undelivered):
				known = next.entry.wants
			case n >= len(runs)+len(deliveries):
				known = next.entry.undelivered
			case n >= len(runs):
				known = next.entry.delivery
			}
			if (known != place{set, next.at}) || env.run(next.entry.id) != next.entry {
				found.Add(next.entry.id, ruleIndexes, "index %d holds it where it does not belong", n)
			}
		}
		if size != set.size {
			found.Add("", ruleIndexes, "index %d counts %d and holds %d", n, set.size, size)
		}
		if n < len(runs) {
			total += size
		}
	}
	if known := len(env.ids()); total != known {
		found.Add("", embedded.RuleDue, "%d runs, %d places", known, total)
	}
	for _, kind := range []embedded.KeyKind{embedded.IdempotencyKey, embedded.SingletonKey} {
		for key, e := range env.holders(kind) {
			if env.run(e.id) != e {
				found.Add(e.id, embedded.RuleOwners, "a key is owned by a run that is gone")
			}
			found.CheckOwner(e.view().project(false), kind, key.task, key.key)
		}
	}
	env.checkSlots(found)
}

func (env *environment) checkRun(e *entry, found *embedded.Violations) error {
	known := e.view()
	run := known.project(true)
	found.CheckDue(run, e.due.at)
	if e.due.set == nil {
		found.Add(e.id, embedded.RuleDue, "a %s run is due in no list", run.Status)
	} else if _, _, ok := e.due.set.find(item{e.due.at, e}); !ok {
		found.Add(e.id, embedded.RuleDue, "the index of a %s run does not hold it", run.Status)
	} else if k, _ := kindOf(run.Status, run.Waiting); e.due.set.kind != k || !e.listedBySource(known.created) {
		found.Add(e.id, embedded.RuleDue, "a %s run is in lists of others", run.Status)
	}
	found.CheckDelivery(run, known.delivery.set != nil, known.undelivered.set != nil)
	env.checkDelivery(known, run, found)
	env.checkSlot(e, known, run, found)
	var types []runlane.EventType
	for _, event := range e.history() {
		types = append(types, runlane.Event{Body: event.body}.Type())
	}
	found.CheckHistory(run, types)
	return found.CheckKeys(run, func(kind embedded.KeyKind, key string) (bool, error) {
		return env.holders(kind)[scopedKey{run.TaskID, key}] == e, nil
	})
}

// checkDelivery checks the run's outbox rows and the places of the live one.
func (env *environment) checkDelivery(known *entry, run *runlane.Run, found *embedded.Violations) {
	if reserved := run.Status == runlane.StatusQueued &&
		!run.DispatchExpiresAt.IsZero(); reserved && known.undelivered.set == nil {
		if latest := known.liveRow(); latest == nil || latest.Status != lane.OutboxDeadLettered {
			found.Add(run.ID, embedded.RuleDelivery, "the end of a reservation is in no index")
		}
	}
	waits := run.Status == runlane.StatusQueued || run.Status == runlane.StatusScheduled
	if waits && len(known.outbox.Deliveries) > 0 {
		latest := &known.outbox.Deliveries[len(known.outbox.Deliveries)-1]
		for i := range known.outbox.Deliveries[:len(known.outbox.Deliveries)-1] {
			if known.outbox.Deliveries[i].Sequence >= latest.Sequence || known.outbox.Deliveries[i].Status != lane.OutboxClaimed {
				found.Add(run.ID, embedded.RuleDelivery, "a superseded delivery that no publisher has claimed is kept")
			}
		}
		onItsWay := latest.Status == lane.OutboxPublished &&
			(run.Status == runlane.StatusScheduled || !run.DispatchExpiresAt.IsZero())
		if (known.delivery.set == nil) != (onItsWay || latest.Status == embedded.Withdrawn) {
			found.Add(
				run.ID,
				embedded.RuleDelivery,
				"the %s delivery of a %s run lies in no index, or in one too many",
				latest.Status,
				run.Status,
			)
		}
	}
}
