package sqlitelane

import (
	"cmp"
	"database/sql/driver"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// entry is a run in a command. It changes only after the last check.
type entry struct {
	*record.Record

	n, env, queue int64
	places        record.Places // as stored in the row
}

// known returns the state that commands are judged by, nil for a run that does not exist.
func (e *entry) known() *embedded.State {
	if e == nil {
		return nil
	}
	state := e.State()
	return &state
}

// entryKey identifies a run in the file.
type entryKey struct {
	env int64
	id  runlane.RunID
}

const (
	// mostEntries bounds the writer's cache.
	mostEntries = 2048
	// mostEvents is the limit, in bytes, of the history in a record, which each commit rewrites. A longer one moves to
	// a chunk.
	mostEvents = 2 << 10
	// chunkBits are the low bits of a chunk's key that number the chunks of its run.
	chunkBits = 20
)

// find returns a run, or nil.
func (t *tx) find(env int64, name runlane.Environment, id runlane.RunID) (*entry, error) {
	if e := t.s.entries[entryKey{env, id}]; e != nil {
		return e, nil
	}
	row, err := t.One("SELECT n, queue, record FROM runs WHERE env = ? AND id = ?", env, string(id))
	if err != nil || row == nil {
		return nil, err
	}
	r, err := record.Decode(runlane.Environment(name.Name()), id, blob(row[2]))
	if err != nil {
		return nil, err
	}
	e := &entry{Record: r, n: number(row[0]), env: env, queue: number(row[1])}
	limited, err := t.isLimited(env, e.queue)
	if err != nil {
		return nil, err
	}
	e.places = r.Places(limited)
	t.remember(e)
	return e, nil
}

func (t *tx) remember(e *entry) {
	if len(t.s.entries) >= mostEntries {
		clear(t.s.entries)
	}
	t.s.entries[entryKey{e.env, e.Run.ID}] = e
}

// run returns an environment's run, or nil.
func (t *tx) run(environment runlane.Environment, id runlane.RunID) (env int64, e *entry, err error) {
	if env, err = t.s.names.find(t.Conn, environment.Name()); err != nil || env == 0 {
		return 0, nil, err
	}
	e, err = t.find(env, environment, id)
	return env, e, err
}

// Parts of a row that change together, each with an index.
const (
	changesPlace = 1 << iota
	changesDelivery
	changesUndelivered
	changesWants
)

// updates has a statement for each combination of changes: SQLite touches an index only if its columns are set.
var updates = func() (texts [16]string) {
	for mask := range texts {
		text := "UPDATE runs SET record = ?"
		for bit, columns := range []string{
			", kind = ?, at = ?, grp = ?, rest = ?, schedule = ?, source = ?",
			", delivery = ?, delivery_at = ?", ", undelivered_at = ?", ", wants_at = ?, ckey = ?",
		} {
			if mask&(1<<bit) != 0 {
				text += columns
			}
		}
		texts[mask] = text + " WHERE n = ?"
	}
	return texts
}()

const insertRun = `INSERT INTO
	runs(env, id, kind, at, queue, delivery, delivery_at, undelivered_at, wants_at, ckey, grp, rest, schedule, source,
		record)
	VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(env, id) DO NOTHING`

// errUsed refuses a new row with a used ID. Nothing was written for it.
var errUsed = errors.New("the run is there already")

// save writes and indexes a run's row. A run without a number gets a new row.
func (t *tx) save(e *entry) error {
	limited, err := t.isLimited(e.env, e.queue)
	if err != nil {
		return err
	}
	if err := t.moveEvents(e); err != nil {
		return err
	}
	old, now := e.places, e.Places(limited)
	e.places = now
	wants, key := instant(now.Wants), any(nil)
	if wants != nil {
		key = record.Line(e.Run.ConcurrencyKey, e.Run.Priority)
	}
	group, err := t.group(e)
	if err != nil {
		return err
	}
	encoded := e.Encode(t.s.encoded[:0]) // SQLite copies it
	t.s.encoded = encoded
	if e.n == 0 {
		e.n, err = t.Insert(insertRun, e.env, string(e.Run.ID), int64(now.Kind), int64(now.At), e.queue,
			present(int64(now.Delivery)), instant(now.DeliveryAt), instant(now.Undelivered), wants, key,
			group, present(now.Rest), present(string(e.Run.Source.ScheduleID)), present(string(e.Run.Source.RunID)), encoded)
		if err != nil || e.n == 0 {
			return cmp.Or(err, errUsed)
		}
		t.remember(e)
		return nil
	}
	mask, values := 0, make([]any, 0, 13)
	values = append(values, encoded)
	if now.Kind != old.Kind || now.At != old.At || now.Rest != old.Rest {
		mask |= changesPlace
		values = append(values, int64(now.Kind), int64(now.At), group, present(now.Rest),
			present(string(e.Run.Source.ScheduleID)), present(string(e.Run.Source.RunID)))
	}
	if now.Delivery != old.Delivery || now.DeliveryAt != old.DeliveryAt {
		mask |= changesDelivery
		values = append(values, present(int64(now.Delivery)), instant(now.DeliveryAt))
	}
	if now.Undelivered != old.Undelivered {
		mask |= changesUndelivered
		values = append(values, instant(now.Undelivered))
	}
	if now.Wants != old.Wants {
		mask |= changesWants
		values = append(values, wants, key)
	}
	if e.Run.Status.Terminal() {
		delete(t.s.entries, entryKey{e.env, e.Run.ID}) // finished runs rarely change
	}
	return t.Exec(updates[mask], append(values, e.n)...)
}

// moveEvents moves the events of a long history into a chunk.
func (t *tx) moveEvents(e *entry) error {
	if e.n == 0 || len(e.Events) <= mostEvents {
		return nil
	}
	err := t.Exec("INSERT INTO chunks(k, first, data) VALUES(?, ?, ?)", e.n<<chunkBits|e.Chunks, e.First, e.Events)
	e.Events, e.First, e.Chunks = nil, e.Run.EventSequence+1, e.Chunks+1
	return err
}

func instant(at embedded.Millis) any {
	if at == embedded.Absent {
		return nil
	}
	return int64(at)
}

// present returns NULL for a zero value.
func present[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

type driverValue = driver.Value

func number(v driver.Value) int64 { n, _ := v.(int64); return n }
func text(v driver.Value) string  { s, _ := v.(string); return s }
func blob(v driver.Value) []byte  { b, _ := v.([]byte); return b }

// Keys of separately stored bytes.
func payloadKey(n int64) int64 { return 2 * n }
func outputKey(n int64) int64  { return 2*n + 1 }

func bytesOf(c *file.Conn, place record.Place, inline []byte, key int64) ([]byte, error) {
	if place.Apart() {
		row, err := c.One("SELECT data FROM bulk WHERE k = ?", key)
		if err != nil {
			return nil, err
		}
		if row == nil {
			return nil, &runlane.Error{
				Code: runlane.ErrInvariantViolation, Message: "a payload or an output is missing in the file",
				Hint: "restore a backup of the file",
			}
		}
		inline = blob(row[0])
	}
	return record.Open(place, inline)
}
