package sqlitelane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// A group's wakeups are delivered one at a time, in the order of publication, which is the order of their numbers.
// Only the first is visible; the others are parked. Acknowledging the first makes the second visible in the same
// commit, so a receiver's search does not slow down as groups grow.

// park stores a wakeup that has others of its group before it.
func (t *Transport) park(tx *tx, queue int64, group string, now time.Time, body []byte) (waits bool, err error) {
	before, err := tx.Number("SELECT 1 FROM messages WHERE queue = ? AND grp = ? LIMIT 1", queue, group)
	if err != nil || before == 0 {
		return false, err
	}
	_, err = insert(tx, queue, parked, now, 0, group, body)
	return true, err
}

// remove deletes a wakeup and makes the next of its group visible, unless the wakeup was taken again.
func remove(tx *file.Tx, m *message, now time.Time) error {
	if m.grouped {
		// The sum keeps SQLite from planning the statement again for the first wakeup of an empty queue.
		err := tx.Exec(`UPDATE messages SET visible = ?1, told = ?1 WHERE visible = ?2 AND n = (
			SELECT b.n FROM messages a JOIN messages b ON b.queue = a.queue AND b.grp = a.grp AND b.n > a.n
			WHERE a.n = ?3 + 0 AND a.taken = ?4 ORDER BY b.n LIMIT 1)`,
			now.UnixMilli(), int64(parked), m.n, m.take)
		if err != nil {
			return err
		}
	}
	return tx.Exec("DELETE FROM messages WHERE n = ? AND taken = ?", m.n, m.take)
}

// unpark makes the first wakeup of each group visible: a program that knows no groups may have removed the one before
// it.
func (t *Transport) unpark(ctx context.Context, r *reception) {
	const first = ` FROM messages a WHERE a.queue = ?1 AND a.visible = ?2 AND NOT EXISTS (
		SELECT 1 FROM messages b WHERE b.queue = a.queue AND b.grp = a.grp AND b.n < a.n)`
	t.correct(ctx, r, "SELECT 1"+first+" LIMIT 1",
		"UPDATE messages SET visible = ?3, told = ?3 WHERE n IN (SELECT a.n"+first+")", int64(parked))
}

func orderedIn(c *file.Conn) (names []runlane.QueueName, err error) {
	err = c.Each("SELECT name FROM ordered_queues ORDER BY name", func(row []driverValue) (bool, error) {
		names = append(names, runlane.QueueName(text(row[0])))
		return true, nil
	})
	return names, err
}

// reconcileOrdered merges the ordered queues of a program and its file. A program that names none takes the file's.
// One that names queues may add to them, but must name all: it would not expect that other queues are ordered.
func reconcileOrdered(f *file.File, named []runlane.QueueName) (all []runlane.QueueName, err error) {
	ctx := context.Background()
	err = f.Read(ctx, func(c *file.Conn) (err error) {
		all, err = orderedIn(c)
		return err
	})
	if err != nil || len(named) == 0 {
		return all, err
	}
	if more, err := judgeOrdered(all, named); err != nil || !more {
		return all, err
	}
	err = f.Write(ctx, func(t *file.Tx) (err error) {
		if all, err = orderedIn(t.Conn); err != nil {
			return err
		}
		if _, err := judgeOrdered(all, named); err != nil {
			return err
		}
		for _, name := range named {
			if slices.Contains(all, name) {
				continue
			}
			if err := refuseActiveRuns(t.Conn, name); err != nil {
				return err
			}
			if err := t.Exec("INSERT OR IGNORE INTO ordered_queues(name) VALUES(?)", string(name)); err != nil {
				return err
			}
		}
		all = named
		return nil
	})
	return all, err
}

// judgeOrdered reports whether named adds to the file's queues. It refuses a name missing from named.
func judgeOrdered(all, named []runlane.QueueName) (more bool, err error) {
	for _, name := range all {
		if !slices.Contains(named, name) {
			return false, invalid(
				fmt.Sprintf("queue %q of this file is ordered, and the program names only %q", name, named),
				"name all ordered queues of the file, or none: then they are taken from it")
		}
	}
	return slices.ContainsFunc(named, func(name runlane.QueueName) bool { return !slices.Contains(all, name) }), nil
}

// refuseActiveRuns refuses to order a queue with active runs in any environment: their wakeups are in no group.
func refuseActiveRuns(c *file.Conn, name runlane.QueueName) error {
	active, err := c.Number(`SELECT count(*) FROM runs INDEXED BY runs_list
		WHERE env IN (SELECT id FROM names) AND kind IN (?, ?, ?, ?) AND queue = (SELECT id FROM names WHERE name = ?)`,
		int64(record.Queued), int64(record.Waiting), int64(record.Leased), int64(record.Cancelling), string(name))
	if err != nil || active == 0 {
		return err
	}
	return invalid(
		fmt.Sprintf("queue %q has %d active runs and cannot become ordered: their wakeups have no order", name, active),
		"let them end or cancel them first, or give new runs an ordered queue of another name")
}

// isOrdered reports whether a queue is ordered, even if another process named it after this one started.
func (t *Transport) isOrdered(tx *tx, queue runlane.QueueName) (bool, error) {
	if slices.Contains(t.ordered, queue) {
		return true, nil
	}
	known := t.storage.ordered.Load()
	if known == nil {
		names, err := orderedIn(tx.Conn)
		if err != nil {
			return false, err
		}
		known = &names
		t.storage.ordered.Store(known)
	}
	return slices.Contains(*known, queue), nil
}

// Ordered reports the queues of [Options.Ordered], whichever process named them. After a write of another process it
// reads the file; if that fails, it reports the queues known at opening.
func (t *Transport) Ordered(queue runlane.QueueName) bool {
	if slices.Contains(t.ordered, queue) {
		return true
	}
	if known := t.storage.ordered.Load(); known != nil {
		return slices.Contains(*known, queue)
	}
	found := int64(0)
	_ = t.storage.read(context.Background(), false, func(c *file.Conn) (err error) {
		found, err = c.Number("SELECT count(*) FROM ordered_queues WHERE name = ?", string(queue))
		return err
	})
	return found > 0
}
