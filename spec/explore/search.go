// Package explore goes through the states of small worlds, for every protocol alike: breadth first, with the shortest
// way to what it finds, and with each rule taken out in turn. What a state is, and what may happen in it, is the
// protocol's.
package explore

import "fmt"

// World is a small world of a protocol: its states S, and L, which names its steps.
type World[S comparable, L fmt.Stringer] interface {
	// Begin is the first state.
	Begin() S
	// Steps lists everything that can happen next: what it is, where it leads, and a violation that only the step
	// shows.
	Steps(s *S, emit func(step L, to S, bad string))
	// Canon brings a state into the form in which it is compared.
	Canon(s *S)
	// Check is what has to hold in every state: what is violated, or "".
	Check(s *S) string
	// Settles is what has to hold from every state on, once faults end: what is violated, the way there, and the
	// units of time that it took. settled remembers beginnings that do.
	Settles(s S, settled *Space[S]) (bad string, log []string, took int)
	// Show is a state in one line.
	Show(s *S) string
}

// Finding is what a search came to.
type Finding struct {
	States, Steps int
	Depth         int
	Cut           bool     // stopped before everything was seen
	Bad           string   // what is violated
	Trace         []string // a shortest way there
	Slowest       int      // most units of time that recovery took
}

// search is a breadth-first search with its shortest ways.
type search[S comparable, L fmt.Stringer] struct {
	*Space[S]
	world  World[S, L]
	parent []int32
	depth  []int16
}

func (x *search[S, L]) reach(s *S, from int32) {
	if _, isNew := x.Add(s); isNew {
		depth := int16(0)
		if from >= 0 {
			depth = x.depth[from] + 1
		}
		x.parent, x.depth = append(x.parent, from), append(x.depth, depth)
	}
}

// trace is a shortest way to a state: between each two neighbors the step that leads from one to the other.
func (x *search[S, L]) trace(id int32) (lines []string) {
	var path []int32
	for i := id; i >= 0; i = x.parent[i] {
		path = append([]int32{i}, path...)
	}
	for k := 1; k < len(path); k++ {
		to := x.States[path[k]]
		lines = append(lines, Line(x.step(x.States[path[k-1]], to), x.world.Show(&to)))
	}
	return lines
}

// step names the step between two neighbors.
func (x *search[S, L]) step(from, to S) (text string) {
	x.world.Steps(&from, func(l L, s S, _ string) {
		x.world.Canon(&s)
		if text == "" && s == to {
			text = l.String()
		}
	})
	return text
}

// Line is a line of a trace: a step, and the state after it.
func Line(step, state string) string { return fmt.Sprintf("%-64s%s", step, state) }

// Explore goes through the states of a world, nearest first, until one is bad, all are seen, or there are so many.
func Explore[S comparable, L fmt.Stringer](w World[S, L], most int) Finding {
	x := &search[S, L]{Space: NewSpace[S](), world: w}
	begin := w.Begin()
	x.reach(&begin, -1)
	settled := NewSpace[S]()
	var f Finding
	for i := int32(0); int(i) < len(x.States) && f.Bad == ""; i++ {
		s := x.States[i]
		var last string
		w.Steps(&s, func(l L, t S, bad string) {
			f.Steps++
			if bad != "" && f.Bad == "" {
				f.Bad, last = bad, Line(l.String(), w.Show(&t))
			}
			w.Canon(&t)
			x.reach(&t, i)
		})
		f.Depth = int(x.depth[i])
		if f.Bad != "" {
			f.Trace = append(x.trace(i), last)
			break
		}
		if f.Bad = w.Check(&s); f.Bad != "" {
			f.Trace = x.trace(i)
			break
		}
		bad, log, took := w.Settles(s, settled)
		if f.Slowest = max(f.Slowest, took); bad != "" {
			f.Bad, f.Trace = bad, append(x.trace(i), log...)
			break
		}
		if len(x.States) > most {
			f.Cut = true
			break
		}
	}
	f.States = len(x.States)
	return f
}
