package sqlitelane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// SelectEnvironments reads all names.
const SelectEnvironments = selectEnvironments

// NewStorage is another process's storage over a file, whose clock is ahead.
func NewStorage(path string, ahead time.Duration) *Storage {
	s := newStorage(file.Options{Path: path, Schema: schema, Application: applicationID, Format: format, Readers: 2})
	s.now = func() time.Time { return time.Now().Add(ahead) }
	return s
}

// NewRelaxedStorage is another process's storage over a file, with a clock, whose commits do not wait for the disk.
func NewRelaxedStorage(path string, now func() time.Time) *Storage {
	s := newStorage(file.Options{
		Path: path, Schema: schema, Application: applicationID, Format: format, Readers: 1, Relaxed: true,
	})
	s.now = now
	return s
}

// NewTracedStorage is NewRelaxedStorage which tells of each command, and when it is durable.
func NewTracedStorage(path string, now func() time.Time, effect func() (durable func())) *Storage {
	s := NewRelaxedStorage(path, now)
	s.options.Effect = effect
	return s
}

// NewSteppedStorage is NewStorage which tells of each step of a restore, and when it has opened its file.
func NewSteppedStorage(path string, step func(name string) error) *Storage {
	s := NewStorage(path, 0)
	s.options.Step = step
	return s
}

// Drop removes a table.
func (s *Storage) Drop(table string) error {
	return s.write(context.Background(), func(t *tx) error { return t.Exec("DROP TABLE " + table) })
}

// Lose removes every wakeup that is on its way.
func (s *Storage) Lose() error {
	return s.write(context.Background(), func(t *tx) error { return t.Exec("DELETE FROM messages") })
}

// Multiplied is the id of one of the runs that Multiply makes.
func Multiplied(n int) runlane.RunID { return runlane.RunID(fmt.Sprintf("many_%08d", n)) }

// Multiply makes so many finished runs like one, each of which ended a millisecond after the one before.
func (s *Storage) Multiply(id runlane.RunID, n int) error {
	return s.write(context.Background(), func(t *tx) error {
		return t.Exec(`WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < ?2 - 1)
			INSERT INTO runs(env, id, kind, at, queue, grp, record)
			SELECT env, printf('many_%08d', i), kind, at - ?2 + i, queue, grp, record FROM runs, c WHERE id = ?1`, string(id), int64(n))
	})
}

// FlowLists are the statements that list flows.
var FlowLists = map[string]string{
	"open flows": flowsOpen, "flows to tend": flowsTended, "finished flows": flowsEarlier,
	"flows that finished at once": flowsOfMoment,
}

// MultiplyFlows makes so many flows of each sort, a millisecond apart: finished ones, those that are to be tended and
// those that are not.
func (s *Storage) MultiplyFlows(e runlane.Environment, n int, at time.Time) error {
	return s.write(context.Background(), func(t *tx) error {
		env, err := s.names.ensure(t.Tx, e.Name())
		if err != nil {
			return err
		}
		return t.Exec(`WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < ?3 - 1)
			INSERT INTO flows(env, `+flowColumns+`, plan)
			SELECT ?1, printf('%08d_%s', i, sort), 1, ?2, 0, 0, iif(sort = 'tend', ?2 + i, 0), iif(sort = 'over', ?2 + i, 0),
				iif(sort = 'over', 'completed', 'active'), x'7b7d'
			FROM c, (SELECT 'tend' AS sort UNION ALL SELECT 'over' UNION ALL SELECT 'open')`,
			env, at.UnixMilli(), int64(n))
	})
}

// NewStorageOn is a storage over a file on a disk of package powerloss, whose log is copied into the file after so many
// pages.
func NewStorageOn(path string, disk *powerloss.Disk, relaxed bool) *Storage {
	return newStorage(file.Options{
		Path: path, Schema: schema, Application: applicationID, Format: format, Readers: 2, VFS: disk.VFS, Relaxed: relaxed,
		Synced: disk.SyncFolder,
	})
}

// OpenOn is Open over a disk of package powerloss.
func OpenOn(path string, disk *powerloss.Disk) (*lane.Lane, error) {
	return open(file.Options{
		Path: path, Schema: schema, Application: applicationID, Format: format, Readers: readers, VFS: disk.VFS,
		Synced: disk.SyncFolder,
	}, &Options{})
}

// OpenQuick is Open for tests in bubbles of virtual time, where nothing may wait for the system, and the disk's work is
// not what is tested.
func OpenQuick(path string) (*lane.Lane, error) {
	return open(file.Options{
		Path: path, Schema: schema, Application: applicationID, Format: format, Readers: readers, Relaxed: true, Deaf: true,
	}, &Options{})
}

// NewTransport shares a storage's file.
func NewTransport(s *Storage, ordered ...runlane.QueueName) *Transport {
	return newTransport(s, nil, ordered...)
}

// ForgetGroups makes the file one of a program that knew of no groups.
func (s *Storage) ForgetGroups() error {
	return s.write(context.Background(), func(t *tx) error {
		return errors.Join(t.Exec("DROP INDEX messages_group"), t.Exec("ALTER TABLE messages DROP COLUMN grp"))
	})
}

// ForgetLists makes all runs those of a program that knew of no lists with groups.
func (s *Storage) ForgetLists() error {
	return s.write(context.Background(), func(t *tx) error {
		return t.Exec("UPDATE runs SET grp = 0, rest = NULL, schedule = NULL, source = NULL")
	})
}

// LoseFirst removes the wakeup that was written first, as a program does that knows of no groups.
func (s *Storage) LoseFirst() error {
	return s.write(context.Background(), func(t *tx) error {
		return t.Exec("DELETE FROM messages WHERE n = (SELECT min(n) FROM messages)")
	})
}

// Pauses are how long wakeups that were handed back wait, and whether the first of a group waits for another.
func (s *Storage) Pauses() (pauses []time.Duration, stuck bool, err error) {
	err = s.read(context.Background(), true, func(c *file.Conn) error {
		n, err := c.Number(`SELECT count(*) FROM messages a WHERE visible = ? AND NOT EXISTS (
			SELECT 1 FROM messages b WHERE b.queue = a.queue AND b.grp = a.grp AND b.n < a.n)`, int64(parked))
		if stuck = n > 0; err != nil {
			return err
		}
		return c.Each("SELECT visible - told FROM messages WHERE taken = 1", func(row []driverValue) (bool, error) {
			pauses = append(pauses, time.Duration(number(row[0]))*time.Millisecond)
			return true, nil
		})
	})
	return pauses, stuck, err
}

// SetCheckpoint copies the log into the file after so many pages.
func (s *Storage) SetCheckpoint(pages int) error {
	return s.write(context.Background(), func(t *tx) error {
		return t.Exec(fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", pages))
	})
}

// Sound asks SQLite whether the file is.
func (s *Storage) Sound() (fault string, err error) {
	err = s.read(context.Background(), false, func(c *file.Conn) error {
		row, err := c.One("PRAGMA integrity_check")
		if err == nil && row != nil && text(row[0]) != "ok" {
			fault = text(row[0])
		}
		return err
	})
	return fault, err
}

// Plans are how SQLite carries out the statements that were prepared so far, but for those that make and check the file.
func (s *Storage) Plans() (plans map[string][]string, err error) {
	f, err := s.opened()
	if err != nil {
		return nil, err
	}
	plans = map[string][]string{}
	for _, statement := range f.Statements() {
		word, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
		if !slices.Contains([]string{"SELECT", "UPDATE", "DELETE", "INSERT"}, word) || strings.Contains(statement, "sqlite_") {
			continue
		}
		plans[statement] = []string{}
		err := s.read(context.Background(), false, func(c *file.Conn) error {
			return c.Each("EXPLAIN QUERY PLAN "+statement, func(row []driverValue) (bool, error) {
				plans[statement] = append(plans[statement], text(row[3]))
				return true, nil
			}, make([]any, 16)...)
		})
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// Schema is how SQLite made the tables and indexes.
func (s *Storage) Schema() (statements []string, err error) {
	err = s.read(context.Background(), false, func(c *file.Conn) error {
		return c.Each("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name", func(row []driverValue) (bool, error) {
			statements = append(statements, strings.Join(strings.Fields(text(row[0])), " "))
			return true, nil
		})
	})
	return statements, err
}

// SetClock stops the storage's clock.
func (s *Storage) SetClock(at time.Time) { s.now = func() time.Time { return at } }

// SetNow replaces the storage's clock.
func (s *Storage) SetNow(now func() time.Time) { s.now = now }

// Contents is a digest of all rows, but for the name that each opening gives the file.
func (s *Storage) Contents() (sum string, err error) {
	digest := sha256.New()
	err = s.read(context.Background(), false, func(c *file.Conn) error {
		var tables []string
		err := c.Each("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'epoch'", func(row []driverValue) (bool, error) {
			tables = append(tables, text(row[0]))
			return true, nil
		})
		for _, table := range tables {
			err = errors.Join(err, c.Each("SELECT * FROM "+table, func(row []driverValue) (bool, error) {
				fmt.Fprintf(digest, "%s %q\n", table, row)
				return true, nil
			}))
		}
		return err
	})
	return string(digest.Sum(nil)), err
}

// Path is where the file is.
func (s *Storage) Path() string { return s.options.Path }

// SetHandBack shortens the pause of a wakeup that was handed back.
func (t *Transport) SetHandBack(d time.Duration) { t.handBack = d }

// Plant appends an event as a newer version would have written it.
func (s *Storage) Plant(key lane.RunKey, body runlane.EventBody) error {
	return s.write(context.Background(), func(t *tx) error {
		_, e, err := t.run(key.Environment, key.RunID)
		if err != nil {
			return err
		}
		event := runlane.Event{
			RunID: key.RunID, Environment: key.Environment, OccurredAt: e.Run.UpdatedAt, Actor: runlane.SystemActor, Body: body,
		}
		if e.Events, err = record.AppendEvent(e.Events, &event, embedded.At(e.Run.CreatedAt)); err != nil {
			return err
		}
		e.Run.EventSequence++
		return t.save(e)
	})
}

// Keep tells other processes that the transport's receptions still handle what they took, as they do every ten seconds.
func (t *Transport) Keep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, rs := range t.receptions {
		for _, r := range rs {
			t.extendVisibility(context.Background(), r)
		}
	}
}

// Log is what the transport logs by.
func (t *Transport) Log() *slog.Logger { return t.log() }

// Look lets the transport's receptions take what they can, now.
func (t *Transport) Look() {
	t.mu.Lock()
	all := maps.Clone(t.receptions)
	t.mu.Unlock()
	for _, rs := range all {
		for _, r := range rs {
			t.take(context.Background(), r)
		}
	}
}

// FreeBytes is how much room the file system of a folder has, where the system tells.
func FreeBytes(folder string) (free int64, known bool) { return freeBytes(folder) }
