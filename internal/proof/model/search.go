package main

import (
	"fmt"
	"hash/maphash"
)

// finding is what a search came to.
type finding struct {
	states, steps int
	depth         int
	cut           bool     // stopped before everything was seen
	bad           string   // what is violated
	trace         []string // a shortest way there
	slowest       int      // most units of time that recovery took
}

// space is a set of states in the order in which they were found. Each is kept once and compared in full; a state costs
// about 130 bytes.
type space struct {
	seed   maphash.Seed
	states []state
	table  []int32 // index into states + 1, found by hash and linear probing
}

func newSpace() *space { return &space{seed: maphash.MakeSeed(), table: make([]int32, 1<<10)} }

// add returns the state's index, and whether it is new. The order in which states are found does not depend on the
// hash.
func (x *space) add(s *state) (int32, bool) {
	if 2*len(x.states) >= len(x.table) {
		x.grow()
	}
	mask := uint64(len(x.table) - 1)
	for h := maphash.Comparable(x.seed, *s) & mask; ; h = (h + 1) & mask {
		switch i := x.table[h]; {
		case i == 0:
			x.states = append(x.states, *s)
			x.table[h] = int32(len(x.states)) //nolint:gosec // memory ends long before
			return int32(len(x.states)) - 1, true
		case x.states[i-1] == *s:
			return i - 1, false
		}
	}
}

func (x *space) grow() {
	x.table = make([]int32, 2*len(x.table))
	mask := uint64(len(x.table) - 1)
	for i := range x.states {
		h := maphash.Comparable(x.seed, x.states[i]) & mask
		for x.table[h] != 0 {
			h = (h + 1) & mask
		}
		x.table[h] = int32(i) + 1
	}
}

// search is a breadth-first search with its shortest ways.
type search struct {
	*space
	world  *world
	parent []int32
	depth  []int16
}

func (x *search) reach(s *state, from int32) int32 {
	id, isNew := x.add(s)
	if isNew {
		depth := int16(0)
		if from >= 0 {
			depth = x.depth[from] + 1
		}
		x.parent, x.depth = append(x.parent, from), append(x.depth, depth)
	}
	return id
}

// trace is a shortest way to a state: between each two neighbors the step that leads from one to the other.
func (x *search) trace(id int32) (lines []string) {
	var path []int32
	for i := id; i >= 0; i = x.parent[i] {
		path = append([]int32{i}, path...)
	}
	for k := 1; k < len(path); k++ {
		to := x.states[path[k]]
		lines = append(lines, line(x.step(x.states[path[k-1]], to), &to))
	}
	return lines
}

// step names the step between two neighbors.
func (x *search) step(from, to state) (text string) {
	x.world.steps(&from, func(l label, s state, _ string) {
		x.world.canon(&s)
		if text == "" && s == to {
			text = l.String()
		}
	})
	return text
}

func (l label) String() string { return fmt.Sprintf("run %d: %s", l.run, l.text) }

func line(text string, s *state) string { return fmt.Sprintf("%-64s%s", text, s) }

// explore goes through the states of a world, nearest first, until one is bad, all are seen, or there are so many.
func (w *world) explore(most int) finding {
	x := &search{space: newSpace(), world: w}
	x.reach(&state{}, -1)
	settled := newSpace()
	var f finding
	for i := int32(0); int(i) < len(x.states) && f.bad == ""; i++ {
		s := x.states[i]
		var last string
		w.steps(&s, func(l label, t state, bad string) {
			f.steps++
			if bad != "" && f.bad == "" {
				f.bad, last = bad, line(l.String(), &t)
			}
			w.canon(&t)
			x.reach(&t, i)
		})
		f.depth = int(x.depth[i])
		if f.bad != "" {
			f.trace = append(x.trace(i), last)
			break
		}
		if f.bad = w.check(&s); f.bad != "" {
			f.trace = x.trace(i)
			break
		}
		bad, log, took := w.settles(s, settled)
		if f.slowest = max(f.slowest, took); bad != "" {
			f.bad, f.trace = bad, append(x.trace(i), log...)
			break
		}
		if len(x.states) > most {
			f.cut = true
			break
		}
	}
	f.states = len(x.states)
	return f
}
