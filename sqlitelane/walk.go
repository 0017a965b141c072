package sqlitelane

import (
	"cmp"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

const (
	// rowsAtOnce is the most rows of a list that a walk reads ahead. With many lists it starts with fewer.
	rowsAtOnce  = 64
	rowsAtFirst = 4
)

// list is an index of runs by a time, then by ID: the time's column, a condition with values from ?6 on, and the
// tables to read from, if not runs alone.
type list struct {
	column, where, from string
	values              []any
	// precedence of all of its runs: a walk goes in the order of ranks, which are the times less the precedences.
	precedence embedded.Millis
}

func deliveriesOf(kind embedded.DeliveryKind) list {
	return list{column: "delivery_at", where: fmt.Sprint("delivery = ", int64(kind))}
}

func (s *Storage) runsOf(c *file.Conn, env int64, by choice, kinds ...record.Kind) ([]list, error) {
	by.value = ofKinds(kinds...)
	return s.listsOf(c, env, byKind, &by)
}

// listsOf returns the chosen lists of an index with groups.
func (s *Storage) listsOf(c *file.Conn, env int64, column string, by *choice) ([]list, error) {
	found, err := s.choose(c, env, column, by)
	lists := make([]list, 0, len(found))
	for _, l := range found {
		in := inGroup(column, l)
		if by.ranked && err == nil {
			in.precedence, err = s.groups.precedence(c, l.group)
		}
		lists = append(lists, in)
	}
	return lists, err
}

func inGroup(column string, l listed) list {
	return list{column: "at", where: column + " = ?6 + 0 AND grp = ?7 + 0", values: []any{l.value, l.group}}
}

// olderOf returns the lists of rows from older programs, which are in no other list.
func olderOf(kinds ...record.Kind) []list {
	lists := make([]list, 0, len(kinds))
	for _, kind := range kinds {
		lists = append(lists, inGroup(byKind, listed{int64(kind), 0}))
	}
	return lists
}

// runsWith returns the lists, by kind, of runs with a value in an indexed column.
func runsWith(column, value string, kinds ...record.Kind) []list {
	lists := make([]list, 0, len(kinds))
	for _, kind := range kinds {
		lists = append(lists, list{
			column: "at", where: column + " = ?6 || '' AND kind = ?7 + 0", values: []any{value, int64(kind)},
		})
	}
	return lists
}

// undelivered lists queued runs that may never get a wakeup.
var undelivered = list{column: "undelivered_at", where: "undelivered_at IS NOT NULL"}

// item is a run at its place in a list. rank orders it in a walk: at, less the precedence of the list.
type item struct {
	*entry

	at, rank embedded.Millis
}

func (i item) compare(other item) int {
	return cmp.Or(cmp.Compare(i.rank, other.rank), cmp.Compare(i.Run.ID, other.Run.ID))
}

// walk merges several lists of one environment in order.
type walk struct {
	c           *file.Conn
	env         int64
	environment runlane.Environment
	descending  bool
	until       embedded.Millis // the last time to read when ascending
	sources     []source
}

// source is one list: the rows read ahead and where to continue.
type source struct {
	text  string
	rows  int64 // to read next
	bound []any
	ahead []item
	at    embedded.Millis
	id    string
	ended bool

	precedence embedded.Millis
}

// beforeAll is before every row.
const beforeAll embedded.Millis = -1 << 62

// newWalk walks up from the first row after the position, or down from the last row before it; nil means all rows.
func newWalk(
	c *file.Conn, env int64, environment runlane.Environment, after *embedded.Position, until embedded.Millis,
	descending bool, lists ...list,
) *walk {
	name := runlane.Environment(environment.Name())
	w := &walk{c: c, env: env, environment: name, until: until, descending: descending}
	order, compare, from := "", ">", embedded.Position{At: beforeAll}
	if descending {
		order, compare, from = " DESC", "<", embedded.Position{At: embedded.BehindAll}
	}
	if after != nil {
		from = *after
	}
	for _, l := range lists { // the sums keep SQLite from planning the query again for each value
		w.sources = append(w.sources, source{
			text: fmt.Sprintf(`SELECT n, queue, id, %[1]s, record FROM %[5]s
				WHERE env = ?1 AND %[2]s AND (%[1]s, id) %[3]s (?2 + 0, ?3 || '') AND %[1]s <= ?4 + 0
				ORDER BY %[1]s%[4]s, id%[4]s LIMIT ?5`,
				l.column, l.where, compare, order, cmp.Or(l.from, "runs")),
			rows:  max(rowsAtFirst, rowsAtOnce/int64(len(lists))),
			bound: l.values,
			at:    from.At + l.precedence,
			id:    from.ID,

			precedence: l.precedence,
		})
	}
	return w
}

func (w *walk) fill(s *source) error {
	if len(s.ahead) > 0 || s.ended {
		return nil
	}
	until := w.until
	if w.descending {
		until = embedded.BehindAll
	}
	rows, wanted := int64(0), s.rows
	arguments := append([]any{w.env, int64(s.at), s.id, int64(until), wanted}, s.bound...)
	s.rows = min(2*s.rows, rowsAtOnce)
	err := w.c.Each(s.text, func(row []driverValue) (bool, error) {
		rows++
		id := text(row[2])
		r, err := record.Decode(w.environment, runlane.RunID(id), blob(row[4]))
		if err != nil {
			return false, err
		}
		e := &entry{Record: r, n: number(row[0]), env: w.env, queue: number(row[1])}
		at := embedded.Millis(number(row[3]))
		i := item{e, at, at - s.precedence}
		s.ahead = append(s.ahead, i)
		s.at, s.id = i.at, id
		return true, nil
	}, arguments...)
	s.ended = rows < wanted
	return err
}

// next returns the next row, ok = false at the end.
func (w *walk) next() (next item, ok bool, err error) {
	if w.env == 0 {
		return item{}, false, nil
	}
	var best *source
	for n := range w.sources {
		s := &w.sources[n]
		if err := w.fill(s); err != nil {
			return item{}, false, err
		}
		if len(s.ahead) == 0 {
			continue
		}
		if best == nil || w.before(s.ahead[0], best.ahead[0]) {
			best = s
		}
	}
	if best == nil {
		return item{}, false, nil
	}
	next, best.ahead = best.ahead[0], best.ahead[1:]
	return next, true, nil
}

func (w *walk) before(a, b item) bool {
	order := a.compare(b)
	return order < 0 && !w.descending || order > 0 && w.descending
}

// Place returns the item's position for cursors.
func (i item) Place(part byte) embedded.Position {
	return embedded.Position{Part: part, At: i.rank, ID: string(i.Run.ID)}
}
