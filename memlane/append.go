package memlane

import (
	"bytes"
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
	r, err := s.commit(&c.Transition, c.Outbox, func(known *embedded.State) error {
		return embedded.JudgeLease(known, c.Projected.ID, c.LeaseToken)
	}, func(env *environment, e *entry) error {
		if c.Flow != nil && !c.Flow.Open(env.flow(c.Flow.FlowID)) {
			return c.Flow.Closed(c.Projected.ID)
		}
		if c.Look != nil && e != nil && (c.Look.Mailed(e.signalCount()) || !e.allUnfinished(c.Look.Calls)) {
			return lane.Moved(c.Projected.ID)
		}
		return embedded.JudgeAppend(e.known(), &c.Transition)
	})
	if err != nil {
		return nil, err
	}
	return &r.commit, nil
}

// commit is the only way to change a run. ownership and eligibility are checks of [embedded.Judge]. eligibility may take a
// slot, so only a creation is checked further. Both get nil for a run that does not exist.
func (s *Storage) commit(
	t *lane.Transition,
	initial lane.InitialOutbox,
	ownership func(*embedded.State) error,
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

// lockCommit locks everything that a commit may change.
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
	ownership func(*embedded.State) error, eligibility func(*environment, *entry) error,
) error {
	p := t.Projected
	env := s.find(p.Environment)
	e := env.run(p.ID)
	if e != nil && e.unpacked == nil {
		e.unpack()
		defer e.pack()
	}
	known := e.known()
	err := embedded.Judge(known, t, ownership,
		func() error { return judgeCommand(e, t) },
		func() error {
			if eligibility == nil {
				return nil
			}
			return eligibility(env, e)
		},
		func() error {
			e = newEntry(p)
			e.copyEvents(t.Events)
			return s.openFor(t).judgeCreation(e, t, embedded.At(s.now()))
		})
	if err != nil {
		return err
	}

	env = s.openFor(t)
	if known == nil {
		env.own(e)
		env.add(e)
	} else {
		e.copyEvents(t.Events)
	}
	e.apply(t, initial, r, s.nextToken)
	env.settleSlot(e)
	if e.state.Status.Terminal() {
		env.disown(e)
	}
	env.reindex(e)
	s.feed.note(e, t)
	r.commit.NotificationPending = e.markToNotify(p)
	e.pack()
	return nil
}

// openFor returns the command's environment, which tracks the partitions of its queue if that is limited.
func (s *Storage) openFor(t *lane.Transition) *environment {
	env := s.open(t.Projected.Environment)
	if t.Queue.Bounded() {
		env.limit(t.Projected.Queue)
	}
	return env
}

// judgeCreation returns why a run cannot be created, else takes its slot. now is the storage's clock.
func (env *environment) judgeCreation(e *entry, t *lane.Transition, now embedded.Millis) error {
	e.created = e.events[0].body.(*runlane.RunCreated) // checked by judgeCommand
	err := embedded.JudgeOwners(t, now, func(kind embedded.KeyKind, key string) (embedded.Owner, error) {
		return env.holders(kind)[scopedKey{e.created.TaskID, key}].asOwner(), nil
	})
	if err != nil {
		return err
	}
	return env.admit(e, t, e.events[len(e.events)-1].at)
}

func judgeCommand(e *entry, t *lane.Transition) error {
	malformed := t.Validate()
	if e == nil {
		return embedded.JudgeCommand(t, malformed, nil, "")
	}
	return embedded.JudgeCommand(t, malformed, e.created, embedded.JudgePayload(t, e.created.Payload))
}

// apply stores the projection and creates the outbox rows that the new events request.
func (e *entry) apply(t *lane.Transition, initial lane.InitialOutbox, r *receipt, token func() uint64) {
	e.keep(t.Projected)
	if payload, ok := lane.ReplacedPayload(t); ok {
		created := *e.created
		created.Payload = bytes.Clone(payload)
		e.created, e.events[0].body = &created, &created
	}
	e.outbox.Commit(e.known(), t, initial, token, func(made *row) {
		r.commit.Outbox = append(r.commit.Outbox, e.message(made))
	})
}
