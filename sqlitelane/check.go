package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// ruleBytes is an invariant of this storage alone.
const ruleBytes = "payload and output can be read"

// Check pages through the runs of an environment by ID and returns violated invariants. The first page also checks all
// owners and slots.
func (s *Storage) Check(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.NewScope("Check", q.Environment)
	limit, after, err := embedded.OpenPage(q, scope)
	if err != nil {
		return nil, err
	}
	var page *runlane.Page[lane.Violation]
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		page = &runlane.Page[lane.Violation]{}
		k := &check{s: s, c: c, env: env, Violations: embedded.Violations{Environment: q.Environment}}
		from := ""
		if after != nil {
			from = after.ID
		} else if err := k.whole(); err != nil {
			return err
		}
		var ids []string
		err = c.Each("SELECT id FROM runs WHERE env = ? AND id > ? ORDER BY id LIMIT ?",
			func(row []driverValue) (bool, error) {
				ids = append(ids, text(row[0]))
				return true, nil
			}, env, from, int64(limit+1))
		for n, id := range ids {
			if n == limit {
				page.Next = scope.Cursor(embedded.Position{ID: ids[n-1]})
				break
			}
			if err == nil {
				err = k.run(runlane.RunID(id))
			}
		}
		page.Items = k.Items
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// check is one page of a check.
type check struct {
	embedded.Violations
	s   *Storage
	c   *file.Conn
	env int64
}

// whole checks the owners of keys and slots.
func (k *check) whole() error {
	err := k.c.Each(`SELECT owners.kind, owners.task, owners.key, runs.id, runs.record FROM owners
		LEFT JOIN runs ON runs.n = owners.run AND runs.env = owners.env WHERE owners.env = ?`,
		func(row []driverValue) (bool, error) {
			if row[3] == nil {
				k.Add("", embedded.RuleOwners, "a key is owned by a run that is gone")
				return true, nil
			}
			r, err := record.Decode(k.Environment, runlane.RunID(text(row[3])), blob(row[4]))
			if err != nil {
				return false, err
			}
			kind, task := embedded.KeyKind(number(row[0])), runlane.TaskID(text(row[1]))
			k.CheckOwner(&r.Run, kind, task, text(row[2]))
			return true, nil
		}, k.env)
	if err != nil {
		return err
	}
	return k.c.Each(`SELECT slots.queue, slots.ckey, runs.id, runs.queue, runs.record FROM slots
		LEFT JOIN runs ON runs.n = slots.run AND runs.env = slots.env WHERE slots.env = ?`,
		func(row []driverValue) (bool, error) {
			if row[2] == nil {
				k.Add("", embedded.RuleSlots, "a slot is held by a run that is gone")
				return true, nil
			}
			r, err := record.Decode(k.Environment, runlane.RunID(text(row[2])), blob(row[4]))
			if err != nil {
				return false, err
			}
			if number(row[0]) != number(row[3]) || text(row[1]) != r.Run.ConcurrencyKey || !lane.HoldsSlot(&r.Run) {
				k.Add(r.Run.ID, embedded.RuleSlots, "a %s run holds a slot where it does not belong", r.Run.Status)
			}
			return true, nil
		}, k.env)
}

// run checks one run.
func (k *check) run(id runlane.RunID) error {
	e, err := k.s.readRun(k.c, k.Environment, id)
	if err != nil || e == nil {
		return err
	}
	const columns = "SELECT kind, at, delivery, delivery_at, undelivered_at, wants_at, ckey, grp, rest, schedule, " +
		"source, (SELECT env FROM groups WHERE id = grp AND queue = runs.queue AND task = ?) FROM runs WHERE n = ?"
	row, err := k.c.One(columns, record.Line(string(e.Run.TaskID), e.Run.Priority), e.n)
	if err != nil {
		return err
	}
	run := &e.Run
	k.CheckDue(run, embedded.Millis(number(row[1])))
	limited, err := k.c.Number("SELECT count(*) FROM limited WHERE env = ? AND queue = ?", e.env, e.queue)
	if err != nil {
		return err
	}
	want := e.Places(limited > 0)
	source := &run.Source
	if older := number(row[7]) == 0; !older && (number(row[11]) != e.env || row[8] != present(want.Rest) ||
		row[9] != present(string(source.ScheduleID)) || row[10] != present(string(source.RunID))) {
		k.Add(id, embedded.RuleDue, "a %s run is in lists of others: %v", run.Status, row[7:])
	}
	if number(row[0]) != int64(want.Kind) {
		k.Add(id, embedded.RuleDue, "a %s run is in list %d", run.Status, number(row[0]))
	}
	if row[2] != present(int64(want.Delivery)) || row[3] != instant(want.DeliveryAt) ||
		row[4] != instant(want.Undelivered) {
		k.Add(id, embedded.RuleDelivery, "the delivery of a %s run is indexed at %v %v %v", run.Status, row[2], row[3],
			row[4])
	}
	k.CheckDelivery(run, row[2] != nil, row[4] != nil)
	if row[5] != instant(want.Wants) || row[5] != nil && text(row[6]) != record.Line(run.ConcurrencyKey, run.Priority) {
		k.Add(id, embedded.RuleSlots, "it waits for a slot from %v, not where it should", row[5])
	}
	if err := k.owned(e); err != nil {
		return err
	}
	return k.history(e)
}

func (k *check) owned(e *entry) error {
	return k.CheckKeys(&e.Run, func(kind embedded.KeyKind, key string) (bool, error) {
		n, err := k.c.Number("SELECT run FROM owners WHERE env = ? AND kind = ? AND task = ? AND key = ?",
			e.env, int64(kind), string(e.Run.TaskID), key)
		return n == e.n, err
	})
}

func (k *check) history(e *entry) error {
	if _, err := e.fullRun(k.c); err != nil {
		k.Add(e.Run.ID, ruleBytes, "%v", err)
		return nil
	}
	events, err := e.history(k.c, 1, e.Run.EventSequence)
	if err != nil {
		return err
	}
	types := make([]runlane.EventType, len(events))
	for i, event := range events {
		if types[i] = event.Type(); event.Sequence != int64(i)+1 {
			k.Add(e.Run.ID, embedded.RuleHistory, "event %d has sequence %d", i+1, event.Sequence)
		}
	}
	k.CheckHistory(&e.Run, types)
	return nil
}
