package sqlitelane

import (
	"cmp"
	"fmt"
	"math"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// group identifies the runs of a task in an environment's queue that have the same priority. task is a [record.Line].
type group struct {
	env, queue int64
	task       string
}

// groups caches the numbers of groups. Numbers never change.
type groups struct {
	mu      sync.RWMutex
	numbers map[group]int64
	known   map[int64]group
}

func (g *groups) number(of group) (int64, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	number, ok := g.numbers[of]
	return number, ok
}

func (g *groups) remember(of group, number int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.numbers == nil {
		g.numbers, g.known = map[group]int64{}, map[int64]group{}
	}
	g.numbers[of], g.known[number] = number, of
}

// of returns the group with a number.
func (g *groups) of(c *file.Conn, n int64) (group, error) {
	g.mu.RLock()
	of, ok := g.known[n]
	g.mu.RUnlock()
	if ok {
		return of, nil
	}
	row, err := c.One("SELECT env, queue, task FROM groups WHERE id = ?", n)
	if err != nil || row == nil {
		return group{}, err
	}
	return group{number(row[0]), number(row[1]), text(row[2])}, nil
}

// precedence of the runs of a group.
func (g *groups) precedence(c *file.Conn, n int64) (embedded.Millis, error) {
	of, err := g.of(c, n)
	_, priority := record.CutLine(of.task)
	return embedded.Precedence(priority), err
}

// group returns the number of the run's group. It is created if missing.
func (t *tx) group(e *entry) (int64, error) {
	of := group{e.env, e.queue, record.Line(string(e.Run.TaskID), e.Run.Priority)}
	if number, ok := t.s.groups.number(of); ok {
		return number, nil
	}
	values := []any{of.env, of.queue, of.task}
	number, err := t.Number("SELECT id FROM groups WHERE env = ? AND queue = ? AND task = ?", values...)
	if err == nil && number == 0 {
		number, err = t.Insert("INSERT INTO groups(env, queue, task) VALUES(?, ?, ?)", values...)
	}
	t.After(func(committed bool) {
		if committed && err == nil {
			t.s.groups.remember(of, number)
		}
	})
	return number, err
}

// listed identifies a list of runs in an index: the rows of a group with a value in the index's column.
type listed struct{ value, group int64 }

// The indexes with groups, by column.
const (
	byKind = "kind"
	byRest = "rest"
)

// choice selects lists.
type choice struct {
	value func(int64) bool // nil: all
	queue int64            // 0: all
	task  runlane.TaskID   // "": all
	wants func(runlane.QueueName) bool
	// ranked lists have the precedence of their group.
	ranked bool
}

// choose finds the nonempty lists of an index by skipping from list to list. Group 0 may contain any run.
func (s *Storage) choose(c *file.Conn, env int64, column string, by *choice) ([]listed, error) {
	if by.queue != 0 || by.task != "" {
		return s.chooseGroups(c, env, column, by)
	}
	var found []listed
	// The comparison includes the last time: otherwise SQLite reads all rows of the previous list.
	next := fmt.Sprintf(`SELECT %[1]s, grp FROM runs WHERE env = ?1 AND (%[1]s, grp, at) > (?2 + 0, ?3 + 0, ?4 + 0)
		AND %[1]s IS NOT NULL ORDER BY %[1]s, grp LIMIT 1`, column)
	at := listed{-1, -1}
	for {
		row, err := c.One(next, env, at.value, at.group, int64(embedded.BehindAll))
		if err != nil || row == nil {
			return found, err
		}
		at = listed{number(row[0]), number(row[1])}
		if by.value != nil && !by.value(at.value) {
			at.group = math.MaxInt64
			continue
		}
		wanted, err := s.wants(c, at.group, by)
		if err != nil {
			return nil, err
		}
		if wanted {
			found = append(found, at)
		}
	}
}

func (s *Storage) wants(c *file.Conn, group int64, by *choice) (bool, error) {
	if group == 0 || by.wants == nil {
		return true, nil
	}
	of, err := s.groups.of(c, group)
	if err != nil {
		return false, err
	}
	name, err := s.names.named(c, of.queue)
	return err == nil && by.wants(runlane.QueueName(name)), err
}

// chooseGroups finds the lists of the groups of a queue, a task, or both.
func (s *Storage) chooseGroups(c *file.Conn, env int64, column string, by *choice) ([]listed, error) {
	text, arguments := "SELECT id FROM groups WHERE env = ?", []any{env}
	if by.queue != 0 {
		text, arguments = text+" AND queue = ?", append(arguments, by.queue)
	}
	all := []int64{0}
	add := func(condition string, more ...any) error {
		return c.Each(text+condition, func(row []driverValue) (bool, error) {
			all = append(all, number(row[0]))
			return true, nil
		}, append(arguments[:len(arguments):len(arguments)], more...)...)
	}
	if by.task == "" {
		if err := add(""); err != nil {
			return nil, err
		}
	} else {
		from, until := record.LinesBetween(string(by.task))
		if err := cmp.Or(add(" AND task = ?", string(by.task)), add(" AND task > ? AND task < ?", from, until)); err != nil {
			return nil, err
		}
	}
	var found []listed
	next := "SELECT min(" + column + ") FROM runs WHERE env = ? AND " + column + " > ?"
	for at := int64(-1); ; {
		row, err := c.One(next, env, at)
		if err != nil || row == nil || row[0] == nil {
			return found, err
		}
		if at = number(row[0]); by.value != nil && !by.value(at) {
			continue
		}
		for _, group := range all {
			found = append(found, listed{at, group})
		}
	}
}

func ofKinds(kinds ...record.Kind) func(int64) bool {
	return func(value int64) bool {
		for _, kind := range kinds {
			if int64(kind) == value {
				return true
			}
		}
		return false
	}
}
