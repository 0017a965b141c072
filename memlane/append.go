package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// AppendRunEvents commits events, projection, owners, slot and outbox rows together.
func (s *Storage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	r, err := s.commit(&c.Transition, c.Outbox, func(e *entry) error {
		if c.LeaseToken != "" && (e == nil || e.state.leaseToken != c.LeaseToken) {
			return conflict(runlane.ConflictLeaseOwnership, c.Projected.ID, "the lease belongs to somebody else, or to nobody, by now")
		}
		return nil
	}, func(_ *environment, e *entry) error { return judgeAppend(e, &c.Transition) })
	if err != nil {
		return nil, err
	}
	return &r.commit, nil
}

// commit is the one way to change a run. It judges in the order of the contract: sequence, then ownership (of the lease), then
// the command itself, then eligibility (of the run for this command, a slot included), then the owners of keys and a creation's
// slot. The functions get nil for a run that does not exist. Eligibility may take a slot: nothing fails after it.
func (s *Storage) commit(
	t *lane.Transition, birth lane.OutboxBirth, ownership func(*entry) error, eligibility func(*environment, *entry) error,
) (*receipt, error) {
	if t.Projected == nil {
		return nil, t.Validate()
	}
	var eventRoom [4]event
	fresh, room := roomFor(t)
	events := copyEvents(eventRoom[:0], &room, t.Events)
	r := newReceipt(t)

	s.mu.Lock()
	e, err := s.write(t, fresh, events, birth, r, ownership, eligibility)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r.record(e, t, events)
	return r, nil
}

// roomFor is where the copies of a command's events go. A new run has room for its first two; a claim's two share a piece.
func roomFor(t *lane.Transition) (fresh *entry, room bodyRoom) {
	if t.Creates() {
		fresh = newEntry(t.Projected)
		return fresh, bodyRoom{created: &fresh.createdRoom, delivery: &fresh.deliveryRoom}
	}
	if len(t.Events) == 2 && t.Events[0].Type() == runlane.EventLeaseClaimed {
		pair := &struct {
			claimed runlane.RunLeaseClaimed
			started runlane.RunStarted
		}{}
		return nil, bodyRoom{claimed: &pair.claimed, started: &pair.started}
	}
	return nil, bodyRoom{}
}

// write is the part of commit under the lock. The events become the storage's own, and so does fresh, if it makes a run.
func (s *Storage) write(
	t *lane.Transition, fresh *entry, events []event, birth lane.OutboxBirth, r *receipt,
	ownership func(*entry) error, eligibility func(*environment, *entry) error,
) (*entry, error) {
	p := t.Projected
	env := s.find(p.Environment)
	e := env.run(p.ID)
	if err := judgeSequence(e, t); err != nil {
		return nil, err
	}
	if ownership != nil {
		if err := ownership(e); err != nil {
			return nil, err
		}
	}
	if err := judgeCommand(e, t); err != nil {
		return nil, err
	}
	if eligibility != nil {
		if err := eligibility(env, e); err != nil {
			return nil, err
		}
	}

	env = s.open(p.Environment)
	if t.Queue.Bounded() {
		env.limit(p.Queue)
	}
	if e == nil {
		e, fresh.created = fresh, events[0].body.(*runlane.RunCreated) // which it is, by Transition.Validate
		if field := e.contradicts(p); field != "" {
			return nil, violation(p.ID, "projected run and run.created differ in %s", field)
		}
		if err := env.judgeOwners(e, events[0].at); err != nil {
			return nil, err
		}
		if err := env.admit(e, t, events[len(events)-1].at); err != nil {
			return nil, err
		}
		env.own(e)
		env.runs[e.id] = e
	}
	e.apply(t, events, birth, r, s.nextToken)
	env.settleSlot(e)
	if e.state.status.Terminal() {
		env.disown(e)
	}
	env.reindex(e)
	return e, nil
}

// judgeSequence comes before everything else: a stale command is a lost race, whatever else is wrong with it.
func judgeSequence(e *entry, t *lane.Transition) error {
	sequence := int64(0)
	if e != nil {
		sequence = e.state.sequence
	}
	if sequence == t.ExpectedSequence {
		return nil
	}
	return conflict(runlane.ConflictEventSequence, t.Projected.ID, "the run has moved on")
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
		return violation(t.Projected.ID, "projected run has another %s than the stored one", field)
	}
	return nil
}

// apply adds the events, takes over the projection and makes the outbox rows.
func (e *entry) apply(t *lane.Transition, events []event, birth lane.OutboxBirth, r *receipt, token func() uint64) {
	e.events = append(e.events, events...)
	e.keep(t.Projected)
	for i := range events {
		switch body := events[i].body.(type) {
		case *runlane.RunLeaseClaimed:
			e.firstPublished = absent // what is published later is for another wait
		case *runlane.RunDeliveryRequested:
			if t.Queue.Bounded() && body.Delivery.DispatchExpiresAt.IsZero() {
				e.withdrawRows(t.ExpectedSequence + int64(i) + 1) // the run waits for a slot, and for the delivery that comes with it
				continue
			}
			made := e.addRow(t.ExpectedSequence+int64(i)+1, &body.Delivery, events[i].at, birth, token)
			r.commit.Outbox = append(r.commit.Outbox, e.message(made, r.ids[i]))
		}
	}
}
