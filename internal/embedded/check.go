package embedded

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Invariants that Check finds broken. A lane may have more.
const (
	RuleDue = "an active run is due in exactly one place, at the instant its projection says; a finished one " +
		"only among the finished"
	RuleDelivery = "only the latest delivery of a queued or scheduled run is indexed, in exactly one place, and every " +
		"queued run is found"
	RuleOwners = "an active run owns its keys; an owner is a run of this environment with that key, and active " +
		"where it must be"
	// RuleSlots does not compare slots with limits, because none is stored: each commit is checked against the limit
	// in its command.
	RuleSlots = "a slot's holder is running or reserved and in its partition; no run holds two; a run that waits for " +
		"one is indexed"
	RuleHistory = "a run has as many events as its sequence says, the first is run.created and no other"
)

// Violations are what a check found. Expected times come from the contract's predicates, not from the code of the
// indexes.
type Violations struct {
	Environment runlane.Environment
	Items       []lane.Violation
}

// Add notes a violation. id is empty if it is not about one run.
func (v *Violations) Add(id runlane.RunID, rule, format string, args ...any) {
	v.Items = append(v.Items, lane.Violation{
		RunKey: lane.RunKey{Environment: v.Environment, RunID: id}, Rule: rule, Detail: fmt.Sprintf(format, args...),
	})
}

// CheckDue compares the time by which a list orders the run.
func (v *Violations) CheckDue(run *runlane.Run, at Millis) {
	if due, ok := dueOf(run); !ok || At(due) != at {
		v.Add(run.ID, RuleDue, "a %s run, due at %s, lies at %s", run.Status, due, at.Time())
	}
}

// CheckDelivery checks in which indexes the run's wakeup is: that of deliveries and that of undelivered runs.
func (v *Violations) CheckDelivery(run *runlane.Run, delivery, undelivered bool) {
	if delivery && run.Status != runlane.StatusQueued && run.Status != runlane.StatusScheduled {
		v.Add(run.ID, RuleDelivery, "a superseded delivery of a %s run is indexed", run.Status)
	}
	if run.Status == runlane.StatusQueued && !delivery && !undelivered {
		v.Add(run.ID, RuleDelivery, "a queued run is in no index")
	}
}

// CheckOwner checks the run that is stored as the owner of a task's key.
func (v *Violations) CheckOwner(run *runlane.Run, kind KeyKind, task runlane.TaskID, key string) {
	if run.TaskID != task || kind.of(run.IdempotencyKey, run.SingletonKey) != key ||
		kind == SingletonKey && run.Status.Terminal() {
		v.Add(run.ID, RuleOwners, "it owns a %s key that is not its own, or is finished", kind)
	}
}

// CheckKeys checks that an active run owns its keys, but for one that may pass on to another run.
func (v *Violations) CheckKeys(run *runlane.Run, owns func(kind KeyKind, key string) (bool, error)) error {
	if run.Status.Terminal() {
		return nil
	}
	for kind, key := range Keys(run) {
		found, err := owns(kind, key)
		if err != nil {
			return err
		}
		if passed := kind == IdempotencyKey && lane.PassesOn(run.Retention); !found && !passed {
			v.Add(run.ID, RuleOwners, "an active run does not own its %s key", kind)
		}
	}
	return nil
}

// CheckHistory checks the types of a run's events.
func (v *Violations) CheckHistory(run *runlane.Run, types []runlane.EventType) {
	if int64(len(types)) != run.EventSequence {
		v.Add(run.ID, RuleHistory, "%d events, sequence %d", len(types), run.EventSequence)
	}
	for i, is := range types {
		if (is == runlane.EventCreated) != (i == 0) {
			v.Add(run.ID, RuleHistory, "event %d is %s", i+1, is)
		}
	}
}

// dueOf is [State.Due] by the contract's own predicates.
func dueOf(run *runlane.Run) (at time.Time, ok bool) {
	switch {
	case run.Status == runlane.StatusCancellationRequested:
		return lane.CancellationFinalizationAt(run)
	case run.Status.Terminal():
		return run.FinishedAt, true
	default:
		return lane.RunnableAt(run)
	}
}
