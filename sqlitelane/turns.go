package sqlitelane

import (
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// Fair is true for queues without order: concurrency keys take turns.
func (t *Transport) Fair(queue runlane.QueueName) bool { return !t.Ordered(queue) }

// taking collects visible wakeups of one queue.
type taking struct {
	tx     *tx
	queue  int64
	name   runlane.QueueName
	now    int64
	orders bool

	found   []message
	damaged []message // a scan finds their runs, and nothing is lost
	keyed   bool      // one of them has a concurrency key
}

// The sums keep SQLite from planning a query again for each value.
const (
	visibleWakeups = `SELECT n, taken, visible, refused, coalesce(grp, ''), wakeup FROM messages WHERE queue = ?`
	firstVisible   = visibleWakeups + ` AND visible <= ? + 0 ORDER BY visible, n LIMIT ? + 0`
	firstOfKey     = visibleWakeups + ` AND visible <= ? + 0 AND grp = ? ORDER BY n LIMIT 1`
	nextKey        = `SELECT min(grp) FROM messages WHERE queue = ? AND grp > ?`
)

// first takes the wakeups that became visible first.
func (t *taking) first(most int) error {
	return t.add(firstVisible, t.queue, t.now, int64(most))
}

func (t *taking) add(query string, values ...any) error {
	return t.tx.Each(query, func(row []driverValue) (bool, error) {
		m := message{
			n:       number(row[0]),
			take:    number(row[1]), // the last one
			visible: number(row[2]),
			refused: number(row[3]),
			key:     text(row[4]),
		}
		m.grouped, t.keyed = t.orders && m.key != "", t.keyed || m.key != ""
		var err error
		if m.wakeup, err = record.DecodeWakeup(t.name, blob(row[5])); err != nil {
			t.damaged = append(t.damaged, m)
			return true, nil //nolint:nilerr // see damaged
		}
		t.found = append(t.found, m)
		return true, nil
	}, values...)
}

// inTurn replaces the wakeups found by the first one of each key, from the key on that is behind the last one served,
// and as many others as there is room for. Keys whose wakeups are all under way are passed, a bounded number.
func (t *taking) inTurn(turns map[int64]string, most int) error {
	others := t.found
	t.found = nil
	begin := turns[t.queue]
	at, wrapped := begin, false
	for looked := 0; len(t.found) < most && looked < 4*most; looked++ {
		row, err := t.tx.One(nextKey, t.queue, at)
		if err != nil {
			return err
		}
		if row[0] == nil { // behind the last key
			if wrapped {
				break
			}
			at, wrapped = "", true
			continue
		}
		if at = text(row[0]); wrapped && at > begin {
			break
		}
		if err := t.add(firstOfKey, t.queue, t.now, at); err != nil {
			return err
		}
		turns[t.queue] = at
	}
	for _, m := range others {
		if len(t.found) < most && !slices.ContainsFunc(t.found, func(o message) bool { return o.n == m.n }) {
			t.found = append(t.found, m)
		}
	}
	return nil
}
