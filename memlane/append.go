package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// AppendRunEvents commits events, projection, owners, slot and outbox rows together.
func (s *Storage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	r, err := s.commit(&c.Transition, c.Outbox, func(e *entry) error {
		if c.LeaseToken != "" && (e == nil || e.state.leaseToken != c.LeaseToken) {
			return embedded.Conflict(
				runlane.ConflictLeaseOwnership,
				c.Projected.ID,
				"the lease no longer belongs to this worker",
			)
		}
		return nil
	}, func(env *environment, e *entry) error {
		if c.Flow != nil && !c.Flow.Open(env.flow(c.Flow.FlowID)) {
			return c.Flow.Closed(c.Projected.ID)
		}
		if c.Look != nil && e != nil && (c.Look.Mailed(e.mailed()) || !e.missing(c.Look.Calls)) {
			return lane.Moved(c.Projected.ID)
		}
		return judgeAppend(e, &c.Transition)
	})
	if err != nil {
		return nil, err
	}
	return &r.commit, nil
}

// commit is the only way to change a run. It checks in the order of the contract:
//
//  1. the sequence;
//  2. the ownership of the lease;
//  3. the command itself;
//  4. the eligibility of the run for this command, a slot included: this may take a slot, so nothing may fail after it;
//  5. for a creation, the owners of keys and the slot.
//
// The functions get nil for a run that does not exist.
func (s *Storage) commit(
	t *lane.Transition,
	initial lane.InitialOutbox,
	ownership func(*entry) error,
	eligibility func(*environment, *entry) error,
) (*receipt, error) {
	if t.Projected == nil {
		return nil, t.Validate()
	}
	r := newReceipt(t)
	h := s.lockCommit(t)
	err := s.write(t, initial, r, ownership, eligibility)
	h.unlock()
	if err != nil {
		return nil, err
	}
	r.record(t)
	return r, nil
}

// lockCommit locks what a commit may touch.
func (s *Storage) lockCommit(t *lane.Transition) held {
	p := t.Projected
	if t.Queue.Bounded() || p.IdempotencyKey != "" || p.SingletonKey != "" {
		return s.lockAll()
	}
	return s.lockUnlimited(p.Environment, p.ID, p.Queue)
}

// write is the part of commit under the lock.
func (s *Storage) write(
	t *lane.Transition, initial lane.InitialOutbox, r *receipt,
	ownership func(*entry) error, eligibility func(*environment, *entry) error,
) error {
	p := t.Projected
	env := s.find(p.Environment)
	e := env.run(p.ID)
	if e != nil && e.unpacked == nil {
		e.unpack()
		defer e.pack()
	}
	if err := judgeSequence(e, t); err != nil {
		return err
	}
	if ownership != nil {
		if err := ownership(e); err != nil {
			return err
		}
	}
	if err := judgeCommand(e, t); err != nil {
		return err
	}
	if eligibility != nil {
		if err := eligibility(env, e); err != nil {
			return err
		}
	}

	env = s.open(p.Environment)
	if t.Queue.Bounded() {
		env.limit(p.Queue)
	}
	if e == nil {
		e = newEntry(p)
		e.copyEvents(t.Events)
		if err := env.judgeCreation(e, t, embedded.At(s.now())); err != nil {
			return err
		}
		env.own(e)
		env.add(e)
	} else {
		e.copyEvents(t.Events)
	}
	e.apply(t, initial, r, s.nextToken)
	env.settleSlot(e)
	if e.state.status.Terminal() {
		env.disown(e)
	}
	env.reindex(e)
	s.feed.note(e, t)
	r.commit.Untold = e.leave(p)
	e.pack()
	return nil
}

// judgeCreation returns why a run cannot be made, or takes the slot that it begins with. now is the storage's clock: an
// import makes runs of a past in which a key had an owner that is over by now.
func (env *environment) judgeCreation(e *entry, t *lane.Transition, now embedded.Millis) error {
	e.created = e.events[0].body.(*runlane.RunCreated) // which it is, by Transition.Validate
	if field := e.contradicts(t.Projected); field != "" {
		return embedded.Violation(e.id, "projected run and run.created differ in %s", field)
	}
	if err := env.judgeOwners(e, max(now, e.events[0].at)); err != nil {
		return err
	}
	return env.admit(e, t, e.events[len(e.events)-1].at)
}

// judgeSequence comes before everything else: a stale command is a lost race, even if something else is wrong with it.
// If the id was used again after pruning, the stored run has another instant of creation and the command is stale, too.
func judgeSequence(e *entry, t *lane.Transition) error {
	sequence := int64(0)
	if e != nil {
		sequence = e.state.sequence
	}
	switch {
	case sequence != t.ExpectedSequence:
		return embedded.Conflict(runlane.ConflictEventSequence, t.Projected.ID, "the run has moved on")
	case e != nil && e.state.createdAt != embedded.At(t.Projected.CreatedAt):
		return embedded.Conflict(runlane.ConflictEventSequence, t.Projected.ID, "the id belongs to another run by now")
	default:
		return nil
	}
}

// judgeCommand finds a command that contradicts itself or the run.
func judgeCommand(e *entry, t *lane.Transition) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := judgeSlots(t); err != nil {
		return err
	}
	if e == nil {
		return nil
	}
	if field := e.contradicts(t.Projected); field != "" {
		return embedded.Violation(t.Projected.ID, "projected run has another %s than the stored one", field)
	}
	return nil
}

// apply takes over the projection and makes the outbox rows of the events that were added.
func (e *entry) apply(t *lane.Transition, initial lane.InitialOutbox, r *receipt, token func() uint64) {
	e.keep(t.Projected)
	added := e.events[len(e.events)-len(t.Events):]
	for i := range added {
		switch body := added[i].body.(type) {
		case *runlane.RunLeaseClaimed:
			e.firstPublished = embedded.Absent // what is published later is for another wait
		case *runlane.RunResumed:
			if e.liveRow() != nil { // it is for the time that the run waited for
				e.withdrawRows(t.ExpectedSequence + int64(i) + 1)
			}
		case *runlane.RunDeliveryRequested:
			if t.Queue.Bounded() && body.Delivery.DispatchExpiresAt.IsZero() {
				// the run waits for a slot, and for the delivery that comes with it
				e.withdrawRows(t.ExpectedSequence + int64(i) + 1)
				continue
			}
			made := e.addRow(t.ExpectedSequence+int64(i)+1, &body.Delivery, added[i].at, initial, token)
			r.commit.Outbox = append(r.commit.Outbox, e.message(made, embedded.EventID(e.id, made.sequence)))
		}
	}
}
