package sqlitelane

import (
	"fmt"
	"math"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// group identifies the runs of a task in an environment's queue.
type group struct {
	env, queue int64
	task       runlane.TaskID
}

// groups caches the numbers of groups. Numbers never change.
type groups struct {
	mu      sync.RWMutex
	numbers map[group]int64
	queues  map[int64]int64 // queue by group
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
		g.numbers, g.queues = map[group]int64{}, map[int64]int64{}
	}
	g.numbers[of], g.queues[number] = number, of.queue
}

func (g *groups) queue(c *file.Conn, number int64) (int64, error) {
	g.mu.RLock()
	queue, ok := g.queues[number]
	g.mu.RUnlock()
	if ok {
		return queue, nil
	}
	return c.Number("SELECT queue FROM groups WHERE id = ?", number)
}

// group returns the number of the run's group. It is created if missing.
func (t *tx) group(e *entry) (int64, error) {
	of := group{e.env, e.queue, e.Run.TaskID}
	if number, ok := t.s.groups.number(of); ok {
		return number, nil
	}
	values := []any{of.env, of.queue, string(of.task)}
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
	queue, err := s.groups.queue(c, group)
	if err != nil {
		return false, err
	}
	name, err := s.names.named(c, queue)
	return err == nil && by.wants(runlane.QueueName(name)), err
}

// chooseGroups finds the lists of the groups of a queue, a task, or both.
func (s *Storage) chooseGroups(c *file.Conn, env int64, column string, by *choice) ([]listed, error) {
	text, arguments := "SELECT id FROM groups WHERE env = ? AND queue = ?", []any{env, by.queue}
	switch {
	case by.queue == 0:
		text, arguments[1] = "SELECT id FROM groups WHERE env = ? AND task = ?", string(by.task)
	case by.task != "":
		text, arguments = text+" AND task = ?", append(arguments, string(by.task))
	}
	all := []int64{0}
	err := c.Each(text, func(row []driverValue) (bool, error) {
		all = append(all, number(row[0]))
		return true, nil
	}, arguments...)
	if err != nil {
		return nil, err
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
