package core

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// DeadLetters is the operator's view of wakeups that were given up: refused ten times, or impossible to accept. Their
// runs wait until an operator requeues the wakeup or cancels the run. Stateless: get one with [Runtime.DeadLetters]
// when you need it. Without dead letters in the storage, all methods return runlane.ErrCapabilityUnsupported.
type DeadLetters struct{ rt *Runtime }

// DeadLetters returns the view.
func (rt *Runtime) DeadLetters() *DeadLetters { return &DeadLetters{rt: rt} }

// List returns a page of dead letters, oldest first. A page may be short or empty and still have a Next. Impossible
// options are runlane.ErrValidationFailed.
func (d *DeadLetters) List(ctx context.Context, options *ListOptions) (*runlane.Page[runlane.DeadLetter], error) {
	if err := d.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer d.rt.gate.leave()
	o := ListOptions{}
	if options != nil {
		o = *options
	}
	if err := firstError(o.check("ListOptions"), d.rt.checkDeadLetters()); err != nil {
		return nil, err
	}
	scope := fmt.Sprintf("dead letters %s %s", d.rt.environment, o.scope())
	after := runlane.Cursor("")
	if o.After != "" {
		at, err := openCursor(o.After, scope, "ListOptions.After")
		if err != nil {
			return nil, err
		}
		after = runlane.Cursor(at)
	}
	page, err := d.rt.listDeadLetters(ctx, &o.RunFilter, o.Limit, after)
	if err != nil {
		return nil, err
	}
	if page.Next != "" {
		page.Next = sealCursor(scope, string(page.Next))
	}
	return page, nil
}

// Requeue asks, in the caller's name, for a fresh wakeup of a run with a dead-lettered one. The event's meta has the
// reason, as "runlane.reason". A run of a bounded queue waits for a slot again. If the new wakeup is refused, the
// outbox keeps it and the call succeeds.
//
// A run without a dead-lettered wakeup, also after a Requeue, is runlane.ErrValidationFailed, without a write. An
// unknown run is runlane.ErrRunNotFound.
func (d *DeadLetters) Requeue(ctx context.Context, id runlane.RunID, options *ChangeOptions) error {
	if err := d.rt.gate.enterLate(); err != nil {
		return err
	}
	defer d.rt.gate.leave()
	c, err := d.rt.newChange(options, "ChangeOptions")
	if err != nil {
		return err
	}
	if err := firstError(id.Validate(), d.rt.checkDeadLetters()); err != nil {
		return err
	}
	_, err = c.requeue(ctx, id)
	return err
}

// RequeueAll requeues all dead letters of matching runs, each as [DeadLetters.Requeue] does, at most Cap in one call.
// Wakeups given up again meanwhile are left for a call without After. For the rest see [Runs.CancelAll].
func (d *DeadLetters) RequeueAll(ctx context.Context, options *BulkOptions) (*BulkResult, error) {
	if err := d.rt.checkDeadLetters(); err != nil {
		return nil, err
	}
	waiting := []runlane.Status{runlane.StatusQueued, runlane.StatusScheduled}
	return d.rt.bulk(ctx, &bulkCall{
		name:      "requeue",
		options:   options,
		allowed:   waiting,
		otherwise: waiting,
		page: func(
			ctx context.Context, f *RunFilter, limit int, after runlane.Cursor,
		) (ids []runlane.RunID, next runlane.Cursor, err error) {
			page, err := d.rt.listDeadLetters(ctx, f, limit, after)
			if err != nil {
				return nil, "", err
			}
			for i := range page.Items {
				ids = append(ids, page.Items[i].RunID)
			}
			return ids, page.Next, nil
		},
		again: true,
		one:   func(ctx context.Context, c change, id runlane.RunID) (bool, error) { return c.requeue(ctx, id) },
	})
}

func (rt *Runtime) checkDeadLetters() error {
	if !rt.storage().Capabilities().KeepsDeadLetters {
		return unsupported("the storage keeps no dead letters")
	}
	return nil
}

// listDeadLetters filters by queue in the storage, and by the rest here, which needs the runs.
func (rt *Runtime) listDeadLetters(
	ctx context.Context, f *RunFilter, limit int, after runlane.Cursor,
) (*runlane.Page[runlane.DeadLetter], error) {
	page, err := rt.storage().ListDeadLetters(ctx, &lane.DeadLetterQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: limit, After: after}, Queue: f.Queue,
	})
	rest := *f
	rest.Queue = ""
	if err != nil || len(page.Items) == 0 || rest.empty() {
		return page, err
	}
	ids := make([]runlane.RunID, len(page.Items))
	for i := range page.Items {
		ids[i] = page.Items[i].RunID
	}
	runs, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{Environment: rt.environment, IDs: ids, WithoutPayload: true})
	if err != nil {
		return nil, err
	}
	matching := make(map[runlane.RunID]bool, len(runs))
	for _, run := range runs {
		matching[run.ID] = f.matches(run)
	}
	kept := &runlane.Page[runlane.DeadLetter]{Next: page.Next}
	for i := range page.Items {
		if matching[page.Items[i].RunID] {
			kept.Items = append(kept.Items, page.Items[i])
		}
	}
	return kept, nil
}

// requeue appends a fresh delivery request and publishes it. It reports whether it changed the run.
func (c change) requeue(ctx context.Context, id runlane.RunID) (changed bool, err error) {
	for range changeRounds {
		seen, err := c.rt.storage().InspectRun(ctx, &lane.InspectQuery{
			RunKey: lane.RunKey{Environment: c.rt.environment, RunID: id},
		})
		if err != nil {
			return false, err
		}
		if seen.Delivery == nil || seen.Delivery.Status != lane.OutboxDeadLettered {
			return false, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: "the run has no wakeup that was given up",
				RunID:   id,
				Cause:   errMovedOn,
				Hint:    "ask Runs().Explain what it waits for",
			}
		}
		if c.tooLate(seen.Run) {
			return false, errMovedOn
		}
		at, initial := c.rt.now(), lane.InitialOutbox{}
		if !c.rt.policy(seen.Run.Queue).Bounded() { // a bounded queue sends once there is a slot
			initial.ClaimUntil = at.Add(outboxClaim)
		}
		commit, err := c.append(ctx, seen.Run, at, c.eventMeta(), initial, c.rt.deliveryNow(seen.Run, at))
		switch {
		case isConflict(err, runlane.ConflictEventSequence):
			continue
		case err != nil:
			return false, err
		}
		if result := c.rt.publishCommitted(ctx, commit.Outbox); result.Err != nil {
			c.rt.logRun(ctx, commit.Run, "wakeup was not published; the outbox keeps it", result.Err)
		}
		c.rt.wants(ctx, commit.Run) // in a bounded queue a slot may be free for it
		return true, nil
	}
	return false, changedTooOften(id)
}
