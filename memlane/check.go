package memlane

import (
	"context"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// Invariants of this storage.
const (
	ruleDue = "an active run is due in exactly one place, at the instant its projection says; a finished one " +
		"only among the finished"
	ruleDelivery = "only the latest delivery of a queued or scheduled run is indexed, in exactly one place"
	ruleOwners   = "an active run owns its keys; an owner is a run of this environment with that key, and active " +
		"where it must be"
	ruleHistory = "a run has as many events as its sequence says, the first is run.created and no other"
	ruleIndexes = "indexes hold what runs know about, in order, and nothing else"
)

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
	page := &runlane.Page[lane.Violation]{}
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	ids := env.ids()
	if after != nil {
		index, found := slices.BinarySearch(ids, runlane.RunID(after.ID))
		if found {
			index++
		}
		ids = ids[index:]
	} else {
		page.Items = append(page.Items, env.checkWhole(q.Environment)...)
	}
	for i, id := range ids {
		if i == limit {
			page.Next = scope.Cursor(embedded.Position{ID: string(ids[i-1])})
			break
		}
		page.Items = append(page.Items, env.checkRun(env.run(id))...)
	}
	return page, nil
}

func (env *environment) checkWhole(name runlane.Environment) []lane.Violation {
	var violations []lane.Violation
	broken := func(id runlane.RunID, rule, format string, args ...any) {
		violations = append(violations, lane.Violation{
			RunKey: lane.RunKey{Environment: name, RunID: id}, Rule: rule, Detail: fmt.Sprintf(format, args...),
		})
	}
	runs := env.lists(&choice{of: func(kind) bool { return true }})
	deliveries := env.sets(func(ix *indexes) []*ordered {
		return []*ordered{&ix.unpublished, &ix.redeliveries, &ix.dead}
	})
	undelivered := env.sets(func(ix *indexes) []*ordered { return []*ordered{&ix.undelivered} })
	others := slices.Concat(deliveries, undelivered)
	for _, key := range env.partitionKeys() {
		others = append(others, &env.partitions[key].wanting)
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
				broken(next.entry.id, ruleIndexes, "index %d is out of order", n)
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
				broken(next.entry.id, ruleIndexes, "index %d holds it where it does not belong", n)
			}
		}
		if size != set.size {
			broken("", ruleIndexes, "index %d counts %d and holds %d", n, set.size, size)
		}
		if n < len(runs) {
			total += size
		}
	}
	if known := len(env.ids()); total != known {
		broken("", ruleDue, "%d runs, %d places", known, total)
	}
	for key, holder := range env.idempotency {
		e := holder.run
		if c := e.view().created; env.run(e.id) != e || c.TaskID != key.task || c.IdempotencyKey != key.key {
			broken(e.id, ruleOwners, "it owns an idempotency key that is not its own")
		}
	}
	for key, e := range env.singletons {
		known := e.view()
		if c := known.created; env.run(e.id) != e || c.TaskID != key.task || c.SingletonKey != key.key ||
			known.state.Status.Terminal() {
			broken(e.id, ruleOwners, "it owns a singleton key that is not its own, or is finished")
		}
	}
	env.checkSlots(func(id runlane.RunID, format string, args ...any) { broken(id, ruleSlots, format, args...) })
	return violations
}

// checkRun checks one run. Expected times come from the contract's predicates, not from the code of the indexes.
func (env *environment) checkRun(e *entry) []lane.Violation {
	var violations []lane.Violation
	broken := func(rule, format string, args ...any) {
		violations = append(violations, lane.Violation{
			RunKey: lane.RunKey{Environment: e.environment, RunID: e.id},
			Rule:   rule,
			Detail: fmt.Sprintf(format, args...),
		})
	}
	known := e.view()
	run := known.project(true)
	due, listed := embedded.DueOf(run)
	if !listed || e.due.set == nil || e.due.at != embedded.At(due) {
		broken(ruleDue, "a %s run, due at %s, lies at %s", run.Status, due, e.due.at.Time())
	} else if _, _, ok := e.due.set.find(item{e.due.at, e}); !ok {
		broken(ruleDue, "the index of a %s run does not hold it", run.Status)
	} else if k, _ := kindOf(run.Status, run.Waiting); e.due.set.kind != k || !e.listedBySource(known.created) {
		broken(ruleDue, "a %s run is in lists of others", run.Status)
	}

	waits := run.Status == runlane.StatusQueued || run.Status == runlane.StatusScheduled
	if known.delivery.set != nil && !waits {
		broken(ruleDelivery, "a superseded delivery of a %s run is indexed", run.Status)
	}
	if run.Status == runlane.StatusQueued && known.delivery.set == nil && known.undelivered.set == nil {
		broken(ruleDelivery, "a queued run is in no index")
	}
	if reserved := run.Status == runlane.StatusQueued &&
		!run.DispatchExpiresAt.IsZero(); reserved && known.undelivered.set == nil {
		if latest := known.liveRow(); latest == nil || latest.Status != lane.OutboxDeadLettered {
			broken(ruleDelivery, "the end of a reservation is in no index")
		}
	}
	env.checkSlot(e, known, run, func(format string, args ...any) { broken(ruleSlots, format, args...) })
	if waits && len(known.outbox.Deliveries) > 0 {
		latest := &known.outbox.Deliveries[len(known.outbox.Deliveries)-1]
		for i := range known.outbox.Deliveries[:len(known.outbox.Deliveries)-1] {
			if known.outbox.Deliveries[i].Sequence >= latest.Sequence || known.outbox.Deliveries[i].Status != lane.OutboxClaimed {
				broken(ruleDelivery, "a superseded delivery that no publisher has claimed is kept")
			}
		}
		onItsWay := latest.Status == lane.OutboxPublished &&
			(run.Status == runlane.StatusScheduled || !run.DispatchExpiresAt.IsZero())
		if (known.delivery.set == nil) != (onItsWay || latest.Status == embedded.Withdrawn) {
			broken(
				ruleDelivery,
				"the %s delivery of a %s run lies in no index, or in one too many",
				latest.Status,
				run.Status,
			)
		}
	}

	if run.Status.Active() {
		if holder := env.idempotency[scopedKey{
			run.TaskID,
			run.IdempotencyKey,
		}]; run.IdempotencyKey != "" && (holder == nil || holder.run != e) {
			broken(ruleOwners, "an active run does not own its idempotency key")
		}
		if run.SingletonKey != "" && env.singletons[scopedKey{run.TaskID, run.SingletonKey}] != e {
			broken(ruleOwners, "an active run does not own its singleton key")
		}
	}

	events := e.history()
	if int64(len(events)) != run.EventSequence {
		broken(ruleHistory, "%d events, sequence %d", len(events), run.EventSequence)
	}
	for i := range events {
		if _, created := events[i].body.(*runlane.RunCreated); created != (i == 0) {
			broken(ruleHistory, "event %d is %T", i+1, events[i].body)
		}
	}
	return violations
}
