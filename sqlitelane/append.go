package sqlitelane

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// AppendRunEvents commits events, projection, owners, slot and outbox rows together.
func (s *Storage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return s.commit(ctx, &c.Transition, c.Outbox, judgment{
		ownership: func(known *embedded.State) error {
			return embedded.JudgeLease(known, c.Projected.ID, c.LeaseToken)
		},
		eligibility: func(t *tx, e *entry, _ *plan) error {
			if c.Flow != nil {
				if open, err := t.isFlowOpen(c.Flow, c.Projected.Environment); err != nil || !open {
					return cmp.Or(err, c.Flow.Closed(c.Projected.ID))
				}
			}
			if c.Look != nil && e != nil {
				if count, err := signalCount(t.Conn, e); err != nil || c.Look.Mailed(count) {
					return cmp.Or(err, lane.Moved(c.Projected.ID))
				}
				if all, err := allUnfinished(t.Conn, e, c.Look.Calls); err != nil || !all {
					return cmp.Or(err, lane.Moved(c.Projected.ID))
				}
			}
			return embedded.JudgeAppend(e.known(), &c.Transition)
		},
	})
}

// judgment has a command's own checks for [embedded.Judge]. Both functions get nil for a run that does not exist, and
// write nothing.
type judgment struct {
	ownership   func(*embedded.State) error
	eligibility func(*tx, *entry, *plan) error
}

// plan has the writes of a command besides its events.
type plan struct {
	takesSlot bool // a free one, below the limit at now
	freesSlot bool // a slot from when the queue had a limit
	now       embedded.Millis
	starts    bool // by the queue's rate, with the pace after it
	pace      lane.Pace

	paceBefore lane.Pace
	woken      *embedded.Wait
	signal     *lane.SignalCommand // the signal that ends the wait
	notify     *lane.NotifyCommand // the notification that ends the wait
}

// commit is the only way to change a run. It writes nothing before the last check of [embedded.Judge].
func (s *Storage) commit(
	ctx context.Context, t *lane.Transition, initial lane.InitialOutbox, j judgment,
) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	p, err := prepare(t)
	if err != nil {
		return nil, err
	}
	var commit *lane.Commit
	var payload []byte
	err = s.write(ctx, func(t *tx) error {
		commit, payload = &lane.Commit{}, nil
		e, err := t.carryOut(p, initial, j, commit)
		if err != nil || p.WithoutRecords || p.run.Payload != nil {
			return err
		}
		payload, err = bytesOf(t.Conn, e.Payload, e.Run.Payload, payloadKey(e.n))
		return err
	})
	if err != nil {
		return nil, err
	}
	if !p.WithoutRecords {
		commit.Run, commit.Events = p.run, p.records()
		if payload != nil {
			commit.Run.Payload = bytes.Clone(payload)
		}
	}
	return commit, nil
}

// carryOut judges a command and writes it. A creation does not look up its ID first: inserting the row fails if the ID
// is used. A refusal by the existing run has priority.
func (t *tx) carryOut(p *prepared, initial lane.InitialOutbox, j judgment, commit *lane.Commit) (*entry, error) {
	env, err := t.s.names.find(t.Conn, p.Projected.Environment.Name())
	if err != nil {
		return nil, err
	}
	if p.ExpectedSequence == 0 {
		todo := &plan{}
		if err = t.judge(env, nil, p, j, todo); err == nil {
			var e *entry
			if e, err = t.change(nil, p, initial, todo, commit); !errors.Is(err, errUsed) {
				return e, err
			}
		}
	}
	e, found := t.find(env, p.Projected.Environment, p.Projected.ID)
	if found != nil || e == nil && err != nil {
		return nil, cmp.Or(found, err)
	}
	todo := &plan{}
	if err := t.judge(env, e, p, j, todo); err != nil {
		return nil, err
	}
	return t.change(e, p, initial, todo, commit)
}

func (t *tx) judge(env int64, e *entry, p *prepared, j judgment, todo *plan) error {
	return embedded.Judge(e.known(), p.Transition, j.ownership,
		func() error { return judgeCommand(e, p) },
		func() error {
			if j.eligibility == nil {
				return nil
			}
			return j.eligibility(t, e, todo)
		},
		func() error {
			if err := t.judgeOwners(env, p); err != nil {
				return err
			}
			return t.judgeSlotOfCreation(env, p, todo)
		})
}

func (t *tx) change(
	e *entry, p *prepared, initial lane.InitialOutbox, todo *plan, commit *lane.Commit,
) (*entry, error) {
	created := e == nil
	if created {
		e = &entry{Record: &record.Record{Outbox: embedded.Outbox[string]{FirstPublished: embedded.Absent}, First: 1}}
		var err error
		if e.env, err = t.s.names.ensure(t.Tx, p.Projected.Environment.Name()); err != nil {
			return nil, err
		}
		if e.queue, err = t.s.names.ensure(t.Tx, string(p.Projected.Queue)); err != nil {
			return nil, err
		}
	}
	if p.Queue.Bounded() {
		if err := t.limit(e.env, e.queue); err != nil {
			return nil, err
		}
	}
	if todo.woken != nil {
		e.Woken = *todo.woken
	}
	if todo.signal != nil {
		if err := t.putSignal(e, todo.signal); err != nil {
			return nil, err
		}
	}
	if todo.notify != nil {
		if err := t.settleEnd(todo.notify); err != nil {
			return nil, err
		}
	}
	e.keep(p)
	state := e.State()
	e.Commit(&state, p.Transition, initial, t.s.nextToken, func(made *record.Delivery) {
		commit.Outbox = append(commit.Outbox, e.Message(made))
	})
	for _, encoded := range p.events {
		e.Events = append(e.Events, encoded...)
	}
	e.Settle(&state)
	if err := t.save(e); err != nil {
		return nil, err
	}
	if err := t.saveBytes(e, p, created); err != nil {
		return nil, err
	}
	if err := t.feed(e, p); err != nil {
		return nil, err
	}
	if err := t.settleSlot(e, p, todo); err != nil {
		return nil, err
	}
	if todo.starts {
		if err := t.putPace(e.partition(), todo.paceBefore, todo.pace, todo.now.Time()); err != nil {
			return nil, err
		}
	}
	var err error
	if commit.NotificationPending, err = t.markToNotify(e); err != nil {
		return nil, err
	}
	if created {
		return e, t.own(e)
	}
	if e.Run.Status.Terminal() {
		return e, t.disown(e)
	}
	return e, nil
}

// saveBytes writes payload and output if they are stored in separate rows.
func (t *tx) saveBytes(e *entry, p *prepared, created bool) error {
	const put = "INSERT INTO bulk(k, data) VALUES(?, ?) ON CONFLICT(k) DO UPDATE SET data = excluded.data"
	if (created || p.replaced != nil) && e.Payload.Apart() {
		payload := p.payload
		if created && p.Projected.Payload == nil {
			payload = shelve(p.Events[0].Body.(*runlane.RunCreated).Payload)
		}
		if err := t.Exec(put, payloadKey(e.n), payload.bytes); err != nil {
			return err
		}
	}
	if e.Output.Apart() {
		return t.Exec(put, outputKey(e.n), p.output.bytes)
	}
	return nil
}
