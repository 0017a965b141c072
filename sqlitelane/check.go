package sqlitelane

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// Invariants of this storage.
const (
	ruleDue = "an active run is due in one list, at the instant its projection says; a finished one is only among " +
		"the finished"
	ruleDelivery = "only the latest delivery of a queued or scheduled run is indexed, and every queued run is found"
	ruleOwners   = "an active run owns its keys; an owner is a run of this environment with that key, and active " +
		"where it must be"
	ruleSlots = "a slot's holder is running or reserved and in its partition; a run that waits for one is indexed"
	ruleBytes = "payload and output can be read"
	ruleEvent = "a run has as many events as its sequence says, the first is run.created and no other"
)

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
	page := &runlane.Page[lane.Violation]{}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		k := &check{s: s, c: c, env: env, environment: q.Environment, page: page}
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
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// check is one page of a check.
type check struct {
	s           *Storage
	c           *file.Conn
	env         int64
	environment runlane.Environment
	page        *runlane.Page[lane.Violation]
}

func (k *check) broken(id runlane.RunID, rule, format string, args ...any) {
	k.page.Items = append(k.page.Items, lane.Violation{
		RunKey: lane.RunKey{Environment: k.environment, RunID: id}, Rule: rule, Detail: fmt.Sprintf(format, args...),
	})
}

// whole checks the owners of keys and slots.
func (k *check) whole() error {
	err := k.c.Each(`SELECT owners.kind, owners.task, owners.key, runs.id, runs.record FROM owners
		LEFT JOIN runs ON runs.n = owners.run AND runs.env = owners.env WHERE owners.env = ?`,
		func(row []driverValue) (bool, error) {
			if row[3] == nil {
				k.broken("", ruleOwners, "a key is owned by a run that is gone")
				return true, nil
			}
			r, err := record.Decode(k.environment, runlane.RunID(text(row[3])), blob(row[4]))
			if err != nil {
				return false, err
			}
			key := r.Run.IdempotencyKey
			if number(row[0]) == singleton {
				key = r.Run.SingletonKey
			}
			if string(r.Run.TaskID) != text(row[1]) || key != text(row[2]) ||
				number(row[0]) == singleton && r.Run.Status.Terminal() {
				k.broken(r.Run.ID, ruleOwners, "it owns a key that is not its own, or is finished")
			}
			return true, nil
		}, k.env)
	if err != nil {
		return err
	}
	return k.c.Each(`SELECT slots.queue, slots.ckey, runs.id, runs.queue, runs.record FROM slots
		LEFT JOIN runs ON runs.n = slots.run AND runs.env = slots.env WHERE slots.env = ?`,
		func(row []driverValue) (bool, error) {
			if row[2] == nil {
				k.broken("", ruleSlots, "a slot is held by a run that is gone")
				return true, nil
			}
			r, err := record.Decode(k.environment, runlane.RunID(text(row[2])), blob(row[4]))
			if err != nil {
				return false, err
			}
			if number(row[0]) != number(row[3]) || text(row[1]) != r.Run.ConcurrencyKey || !lane.HoldsSlot(&r.Run) {
				k.broken(r.Run.ID, ruleSlots, "a %s run holds a slot where it does not belong", r.Run.Status)
			}
			return true, nil
		}, k.env)
}

// run checks one run. Expected times come from the contract's predicates.
func (k *check) run(id runlane.RunID) error {
	e, err := k.s.readRun(k.c, k.environment, id)
	if err != nil || e == nil {
		return err
	}
	const columns = "SELECT kind, at, delivery, delivery_at, undelivered_at, wants_at, ckey, grp, rest, schedule, " +
		"source, (SELECT env FROM groups WHERE id = grp AND queue = runs.queue AND task = ?) FROM runs WHERE n = ?"
	row, err := k.c.One(columns, string(e.Run.TaskID), e.n)
	if err != nil {
		return err
	}
	run := &e.Run
	due, active := embedded.DueOf(run)
	if !active || embedded.At(due) != embedded.Millis(number(row[1])) {
		k.broken(id, ruleDue, "a %s run, due at %s, lies at %s", run.Status, due, embedded.Millis(number(row[1])).Time())
	}
	limited, err := k.c.Number("SELECT count(*) FROM limited WHERE env = ? AND queue = ?", e.env, e.queue)
	if err != nil {
		return err
	}
	want := e.Places(limited > 0)
	source := &run.Source
	if older := number(row[7]) == 0; !older && (number(row[11]) != e.env || row[8] != present(want.Rest) ||
		row[9] != present(string(source.ScheduleID)) || row[10] != present(string(source.RunID))) {
		k.broken(id, ruleDue, "a %s run is in lists of others: %v", run.Status, row[7:])
	}
	if number(row[0]) != int64(want.Kind) {
		k.broken(id, ruleDue, "a %s run is in list %d", run.Status, number(row[0]))
	}
	if row[2] != present(int64(want.Delivery)) || row[3] != instant(want.DeliveryAt) ||
		row[4] != instant(want.Undelivered) {
		k.broken(id, ruleDelivery, "the delivery of a %s run is indexed at %v %v %v", run.Status, row[2], row[3],
			row[4])
	}
	waits := run.Status == runlane.StatusQueued || run.Status == runlane.StatusScheduled
	if run.Status == runlane.StatusQueued && row[2] == nil && row[4] == nil || !waits && row[2] != nil {
		k.broken(id, ruleDelivery, "a %s run is in no list of deliveries, or in one too many", run.Status)
	}
	if row[5] != instant(want.Wants) || row[5] != nil && text(row[6]) != run.ConcurrencyKey {
		k.broken(id, ruleSlots, "it waits for a slot from %v, not where it should", row[5])
	}
	if err := k.owned(e); err != nil {
		return err
	}
	return k.history(e)
}

func (k *check) owned(e *entry) error {
	if e.Run.Status.Terminal() {
		return nil
	}
	for kind, key := range map[int64]string{idempotency: e.Run.IdempotencyKey, singleton: e.Run.SingletonKey} {
		if key == "" {
			continue
		}
		n, err := k.c.Number("SELECT run FROM owners WHERE env = ? AND kind = ? AND task = ? AND key = ?",
			e.env, kind, string(e.Run.TaskID), key)
		if err != nil {
			return err
		}
		if n != e.n {
			k.broken(e.Run.ID, ruleOwners, "an active run does not own its key")
		}
	}
	return nil
}

func (k *check) history(e *entry) error {
	if _, err := e.fullRun(k.c); err != nil {
		k.broken(e.Run.ID, ruleBytes, "%v", err)
		return nil
	}
	events, err := e.history(k.c, 1, e.Run.EventSequence)
	if err != nil {
		return err
	}
	if int64(len(events)) != e.Run.EventSequence {
		k.broken(e.Run.ID, ruleEvent, "%d events, sequence %d", len(events), e.Run.EventSequence)
	}
	for i, event := range events {
		if created := event.Type() == runlane.EventCreated; created != (i == 0) || event.Sequence != int64(i)+1 {
			k.broken(e.Run.ID, ruleEvent, "event %d is %s", event.Sequence, event.Type())
		}
	}
	return nil
}
