package sqlitelane

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// paceOf reads the pace of a partition.
func paceOf(c *file.Conn, p partitionKey) (pace lane.Pace, err error) {
	row, err := c.One("SELECT next, line, every FROM paces WHERE env = ? AND queue = ? AND ckey = ?",
		p.env, p.queue, p.key)
	if err == nil && row != nil {
		pace = lane.Pace{Next: number(row[0]), Line: number(row[1]), Span: number(row[2])}
	}
	return pace, err
}

// putPace writes a pace. A new one first removes a few that are over, so that the table does not grow with the keys
// that were ever used.
func (t *tx) putPace(p partitionKey, before, pace lane.Pace, at time.Time) error {
	if before == (lane.Pace{}) {
		const over = `DELETE FROM paces WHERE (env, queue, ckey) IN (SELECT env, queue, ckey FROM paces
			WHERE env = ?1 AND queue = ?2 AND ckey > ?3 AND max(next, line) <= ?4 LIMIT 2)`
		if err := t.Exec(over, p.env, p.queue, p.key, at.UnixMicro()); err != nil {
			return err
		}
	}
	return t.Exec(`INSERT INTO paces(env, queue, ckey, next, line, every) VALUES(?, ?, ?, ?, ?, ?)
		ON CONFLICT(env, queue, ckey) DO UPDATE SET next = excluded.next, line = excluded.line, every = excluded.every`,
		p.env, p.queue, p.key, pace.Next, pace.Line, pace.Span)
}

// judgeStart plans a start in a queue with a rate.
func (t *tx) judgeStart(p partitionKey, q runlane.Queue, at time.Time, todo *plan) (ok bool, err error) {
	before, err := paceOf(t.Conn, p)
	if err != nil {
		return false, err
	}
	todo.paceBefore, todo.pace = before, before
	_, ok = todo.pace.Start(q, at)
	todo.starts, todo.now = ok, embedded.At(at)
	return ok, nil
}

// room is how many runs of a partition may get a slot and a ticket, or start now.
func roomOf(c *file.Conn, policy runlane.Queue, p partitionKey, at time.Time, starts bool) (int, error) {
	var pace lane.Pace
	var err error
	if policy.Rated() {
		if pace, err = paceOf(c, p); err != nil {
			return 0, err
		}
	}
	taken := 0
	if policy.Concurrency > 0 {
		if taken, err = occupied(c, p, embedded.At(at)); err != nil {
			return 0, err
		}
	}
	return embedded.RoomFor(policy, taken, pace, at, starts), nil
}

// TakeTicket gives out the next start time of a partition.
func (s *Storage) TakeTicket(ctx context.Context, c *lane.TicketCommand) (start time.Time, ok bool, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return time.Time{}, false, err
	}
	err = s.write(ctx, func(t *tx) error {
		p := partitionKey{key: c.ConcurrencyKey}
		var err error
		if p.env, err = s.names.ensure(t.Tx, c.Environment.Name()); err != nil {
			return err
		}
		if p.queue, err = s.names.ensure(t.Tx, string(c.Queue.Name)); err != nil {
			return err
		}
		before, err := paceOf(t.Conn, p)
		if err != nil {
			return err
		}
		pace := before
		if start, ok = pace.Ticket(c.Queue, c.At, c.Until); !ok {
			return nil
		}
		return t.putPace(p, before, pace, c.At)
	})
	return start, ok && err == nil, err
}
