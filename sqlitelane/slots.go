package sqlitelane

import (
	"cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// limitedQueue is a queue that was ever limited.
type limitedQueue struct{ env, queue int64 }

// partitionKey identifies the runs that a limit counts: those with one concurrency key, or the whole queue for runs
// without keys.
type partitionKey struct {
	env, queue int64
	key        string
}

func (e *entry) partition() partitionKey { return partitionKey{e.env, e.queue, e.Run.ConcurrencyKey} }

func (t *tx) isLimited(env, queue int64) (bool, error) {
	if t.s.limited == nil {
		known := map[limitedQueue]bool{}
		err := t.Each("SELECT env, queue FROM limited", func(row []driverValue) (bool, error) {
			known[limitedQueue{number(row[0]), number(row[1])}] = true
			return true, nil
		})
		if err != nil {
			return false, err
		}
		t.s.limited = known
	}
	return t.s.limited[limitedQueue{env, queue}], nil
}

// limit starts indexing the queue's runs that want a slot. The first call for a queue reads all its active runs.
// Queues without a limit cost nothing.
func (t *tx) limit(env, queue int64) error {
	if known, err := t.isLimited(env, queue); err != nil || known {
		return err
	}
	if err := t.Exec("INSERT INTO limited(env, queue) VALUES(?, ?)", env, queue); err != nil {
		return err
	}
	name, err := t.s.names.named(t.Conn, env)
	if err != nil {
		return err
	}
	type want struct {
		n     int64
		since embedded.Millis
		line  string
	}
	var wants []want
	for _, kind := range []record.Kind{record.Queued, record.Waiting, record.Leased} {
		err := t.Each(`SELECT n, id, record FROM runs WHERE env = ?1 AND kind = ?2 AND queue = ?3
			AND grp IN (SELECT 0 UNION ALL SELECT id FROM groups WHERE env = ?1 AND queue = ?3)`,
			func(row []driverValue) (bool, error) {
				r, err := record.Decode(runlane.Environment(name), runlane.RunID(text(row[1])), blob(row[2]))
				if err != nil {
					return false, err
				}
				if since, ok := r.WantsSlot(); ok {
					wants = append(wants, want{number(row[0]), since, record.Line(r.Run.ConcurrencyKey, r.Run.Priority)})
				}
				return true, nil
			}, env, int64(kind), queue)
		if err != nil {
			return err
		}
	}
	for _, w := range wants {
		if err := t.Exec("UPDATE runs SET wants_at = ?, ckey = ? WHERE n = ?", int64(w.since), w.line, w.n); err != nil {
			return err
		}
	}
	for _, e := range t.s.entries { // only their index has changed
		if e.env == env && e.queue == queue {
			e.places = e.Places(true)
		}
	}
	t.s.limited[limitedQueue{env, queue}] = true
	return nil
}

// occupies reports whether the run uses capacity at now. An executing run does until a commit frees its slot.
func occupies(c *file.Conn, e *entry, now embedded.Millis) (bool, error) {
	if e == nil || e.n == 0 {
		return false, nil
	}
	n, err := c.Number("SELECT count(*) FROM slots WHERE run = ? AND (until IS NULL OR until > ?)", e.n, int64(now))
	return n > 0, err
}

func occupied(c *file.Conn, p partitionKey, now embedded.Millis) (int, error) {
	n, err := c.Number(`SELECT count(*) FROM slots WHERE env = ? AND queue = ? AND ckey = ?
		AND (until IS NULL OR until > ?)`,
		p.env, p.queue, p.key, int64(now))
	return int(n), err
}

// reservationOver reports whether the run's reservation has expired at now or another run took the slot.
func reservationOver(c *file.Conn, e *entry, now embedded.Millis) (bool, error) {
	if e.Run.DispatchExpiresAt.IsZero() {
		return false, nil
	}
	has, err := occupies(c, e, now)
	if err != nil || has || embedded.At(e.Run.DispatchExpiresAt) <= now {
		return !has, err
	}
	pace, err := paceOf(c, e.partition()) // the ticket of a queue without slots cannot be taken
	return pace == lane.Pace{}, err
}

// judgeSlotOfClaim plans the slot of a claim, or returns why the queue's limit does not let the run start.
func (t *tx) judgeSlotOfClaim(e *entry, c *lane.ClaimCommand, todo *plan) error {
	todo.now = embedded.At(c.At)
	limited, err := t.isLimited(e.env, e.queue)
	if err != nil || !limited && !c.Queue.Bounded() {
		return err
	}
	has, err := occupies(t.Conn, e, todo.now)
	if err != nil {
		return err
	}
	use, err := embedded.JudgeSlotOfClaim(c, has)
	todo.freesSlot = use == embedded.FreeSlot
	if err == nil && use == embedded.TakeSlot {
		err = t.judgeRoom(e.partition(), c.Queue.Concurrency, todo, embedded.LostRace(lane.LostCapacity))
	}
	if err != nil || !c.Queue.Rated() {
		return err
	}
	if ok, err := t.judgeStart(e.partition(), c.Queue, c.At, todo); err != nil || !ok {
		return cmp.Or(err, error(embedded.LateStart{Pace: todo.pace}))
	}
	return nil
}

// judgeSlotOfCreation plans the slot of a creation that needs one, at the time of its events.
func (t *tx) judgeSlotOfCreation(env int64, p *prepared, todo *plan) error {
	if !embedded.NeedsSlot(p.Transition) && !embedded.NeedsStart(p.Transition) {
		return nil
	}
	queue, err := t.s.names.find(t.Conn, string(p.Projected.Queue))
	if err != nil {
		return err
	}
	todo.now = embedded.At(p.Events[len(p.Events)-1].OccurredAt)
	key := partitionKey{env, queue, p.Projected.ConcurrencyKey}
	if embedded.NeedsSlot(p.Transition) {
		if err := t.judgeRoom(key, p.Queue.Concurrency, todo, embedded.NoSlot(p.Projected.ID)); err != nil {
			return err
		}
	}
	if !embedded.NeedsStart(p.Transition) {
		return nil
	}
	if ok, err := t.judgeStart(key, p.Queue, todo.now.Time(), todo); err != nil || !ok {
		return cmp.Or(err, embedded.NoSlot(p.Projected.ID))
	}
	return nil
}

func (t *tx) judgeRoom(p partitionKey, limit int, todo *plan, none error) error {
	taken, err := occupied(t.Conn, p, todo.now)
	if err != nil {
		return err
	}
	if taken >= limit {
		return none
	}
	todo.takesSlot = true
	return nil
}

// settleSlot takes or frees the run's slot after its commit. Only a running or reserved run keeps one.
func (t *tx) settleSlot(e *entry, p *prepared, todo *plan) error {
	limited, err := t.isLimited(e.env, e.queue)
	if err != nil || !limited {
		return err
	}
	if !lane.HoldsSlot(&e.Run) || todo.freesSlot {
		return t.Exec("DELETE FROM slots WHERE run = ?", e.n)
	}
	until := any(nil)
	if !e.Run.Status.Owned() {
		until = int64(embedded.At(e.Run.DispatchExpiresAt))
	}
	if !todo.takesSlot {
		return t.Exec("UPDATE slots SET until = ? WHERE run = ?", until, e.n)
	}
	return t.takeSlot(e, p.Queue.Concurrency, todo.now, until)
}

// takeSlot gives the run a slot; one is free. It takes the slot of an expired reservation last: that run's worker may
// still claim it if its clock is behind.
func (t *tx) takeSlot(e *entry, limit int, now embedded.Millis, until any) error {
	if err := t.Exec("DELETE FROM slots WHERE run = ?", e.n); err != nil {
		return err
	}
	p := e.partition()
	kept, err := t.Number("SELECT count(*) FROM slots WHERE env = ? AND queue = ? AND ckey = ?", p.env, p.queue, p.key)
	if err != nil {
		return err
	}
	if over := kept - int64(limit) + 1; over > 0 {
		err := t.Exec(`DELETE FROM slots WHERE n IN (SELECT n FROM slots
			WHERE env = ? AND queue = ? AND ckey = ? AND until <= ? ORDER BY until, n LIMIT ?)`,
			p.env, p.queue, p.key, int64(now), over)
		if err != nil {
			return err
		}
	}
	return t.Exec("INSERT INTO slots(env, queue, ckey, run, until) VALUES(?, ?, ?, ?, ?)",
		p.env, p.queue, p.key, e.n, until)
}

// holders returns the runs with a slot in e's partition, in the order in which they took it.
func holders(c *file.Conn, e *entry) (ids []runlane.RunID, err error) {
	p := e.partition()
	err = c.Each(`SELECT runs.id FROM slots JOIN runs ON runs.n = slots.run
		WHERE slots.env = ? AND slots.queue = ? AND slots.ckey = ? ORDER BY slots.n`,
		func(row []driverValue) (bool, error) {
			ids = append(ids, runlane.RunID(text(row[0])))
			return true, nil
		}, p.env, p.queue, p.key)
	return ids, err
}
