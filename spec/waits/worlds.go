package waits

import (
	"math/bits"

	"github.com/runlane/runlane-go/spec/explore"
)

// condition says after which ends a node runs.
type condition uint8

const (
	ifSucceeded condition = iota
	ifFailed
	always
)

// node is a run of a flow: what it goes after, as bits, and after which ends.
type node struct {
	after uint8
	when  condition
}

// signal is one that is sent: to an inbox, under an id. The same one twice is a repetition after a lost answer.
type signal struct{ inbox, id uint8 }

// world is a small world: what there is, what may happen, and which rules hold.
type world struct {
	name string

	// scripts are what handlers do. S: a step. W, X: wait for inbox 0, 1. L: for 0, with a time limit. A: for either.
	// B: for both. P: for 0 and 1 in two branches. Q: for 0 in a branch, for children in another. Z: sleep. C: a
	// call. R: the end of run 0. Then the run ends. "" is no such run.
	scripts [maxRuns]string
	start   uint8 // bits: runs that are queued at the beginning
	parent  [maxRuns]uint8
	nodes   []node // of a flow; retried, node n is run n + len(nodes)
	bounded uint8  // bits: runs of one bounded queue of limit 1
	narrow  bool   // the run item has room for one thing
	toNode  bool   // signals go to node 0
	signals []signal
	// o: resume 0. c: cancel 0. p: prune. r: use the id again. x: cancel the flow. z: repeat that. y: retry the flow.
	acts    string
	deaths  uint8
	fails   uint8
	procs   int
	workers uint8
	removed explore.Rules
}

func (w *world) isBounded(i uint8) bool { return w.bounded&(1<<i) != 0 }

func (w *world) children(i uint8) (n uint8) {
	for _, of := range w.parent {
		if of == i+1 {
			n++
		}
	}
	return n
}

// place is which node a run is, and of which round; false: it is of no flow.
func (w *world) place(i uint8) (n, round uint8, ok bool) {
	count := uint8(len(w.nodes)) // at most maxRuns
	if count == 0 || i >= 2*count {
		return 0, 0, false
	}
	return i % count, i / count, true
}

// runOf is the run of a node in a round.
func (w *world) runOf(n, round uint8) uint8 { return n + round*uint8(len(w.nodes)) } // at most maxRuns

// latest is the run that a node names now.
func (w *world) latest(s *state, n uint8) uint8 { return w.nodeRun(s, n, s.flow.round) }

// addressees are the runs that want to be told of the end of run i: who called it, who listens to it.
func (w *world) addressees(s *state, i uint8) (set uint8) {
	if of := w.parent[i]; of > 0 {
		set |= 1 << (of - 1)
	}
	if s.runs[i].listened {
		set |= 1 << 1
	}
	return set
}

func first(set uint8) uint8 { return uint8(bits.TrailingZeros8(set)) } // at most 8

// Begin has the runs of the start queued.
func (w *world) Begin() (s state) {
	for i := range s.runs {
		if w.start&(1<<i) != 0 {
			s.runs[i].status = queued
		}
	}
	return s
}

type scripts = [maxRuns]string

type parents = [maxRuns]uint8

// worlds are explored one by one.
var worlds = []world{
	{
		name:    "signals, twice sent",
		scripts: scripts{"SWS"},
		signals: []signal{{0, 0}, {0, 0}, {0, 1}},
		deaths:  2,
		fails:   1,
	},
	{name: "signals, three deaths", scripts: scripts{"WX"}, signals: []signal{{0, 0}, {1, 0}}, acts: "c", deaths: 3},
	{
		name:    "rounds of approval",
		scripts: scripts{"WX"},
		signals: []signal{{0, 0}, {0, 1}},
		acts:    "o",
		deaths:  1,
		fails:   1,
	},
	{name: "rounds of one name", scripts: scripts{"AW"}, signals: []signal{{0, 0}, {1, 0}}, deaths: 1, fails: 1},
	{name: "either of two", scripts: scripts{"AS"}, signals: []signal{{0, 0}, {1, 0}}, acts: "o", deaths: 2},
	{
		name:    "both of two",
		scripts: scripts{"B"},
		signals: []signal{{0, 0}, {1, 0}, {1, 1}},
		acts:    "o",
		deaths:  1,
		procs:   4,
	},
	{name: "two branches", scripts: scripts{"P"}, signals: []signal{{0, 0}, {1, 0}}, acts: "o", deaths: 2, fails: 1},
	{name: "two branches, narrow", scripts: scripts{"P"}, signals: []signal{{0, 0}, {1, 0}}, deaths: 1, narrow: true},
	{name: "signal with a limit", scripts: scripts{"LS"}, signals: []signal{{0, 0}, {0, 1}}, acts: "oc", deaths: 2},
	{name: "sleep", scripts: scripts{"SZW"}, signals: []signal{{0, 0}}, acts: "oc", deaths: 2, fails: 1},
	{
		name:    "bounded queue",
		scripts: scripts{"W", "E"},
		start:   3,
		signals: []signal{{0, 0}, {0, 1}},
		bounded: 3,
		acts:    "o",
		deaths:  1,
		fails:   1,
	},
	{name: "parent of two", scripts: scripts{"C", "E", "E"}, parent: parents{0, 1, 1}, deaths: 1, fails: 1},
	{
		name:    "parent of one, cancelled",
		scripts: scripts{"C", "E"},
		parent:  parents{0, 1},
		acts:    "co",
		deaths:  2,
		fails:   1,
		procs:   4,
		workers: 3,
	},
	{
		name:    "parent of two, cancelled",
		scripts: scripts{"C", "E", "E"},
		parent:  parents{0, 1, 1},
		acts:    "c",
		deaths:  1,
	},
	{name: "parent, pruned", scripts: scripts{"C", "E"}, parent: parents{0, 1}, acts: "pp", deaths: 1},
	{
		name:    "parent and children in a slot",
		scripts: scripts{"C", "E", "E"},
		parent:  parents{0, 1, 1},
		bounded: 7,
		deaths:  1,
	},
	{
		name:    "signal beside a call",
		scripts: scripts{"Q", "E"},
		parent:  parents{0, 1},
		signals: []signal{{0, 0}},
		deaths:  1,
	},
	{
		name:    "signal beside a call, narrow",
		scripts: scripts{"Q", "E"},
		parent:  parents{0, 1},
		signals: []signal{{0, 0}},
		acts:    "c",
		deaths:  1,
		narrow:  true,
	},
	{name: "late listener", scripts: scripts{"E", "R"}, start: 3, acts: "cp", deaths: 2, fails: 1},
	{name: "flow, join", nodes: []node{{}, {}, {after: 3}}, deaths: 1, fails: 1, acts: "x"},
	{name: "flow, always", nodes: []node{{}, {after: 1}, {after: 3, when: always}}, deaths: 1, fails: 1, acts: "x"},
	{name: "flow, diamond", nodes: []node{{}, {after: 1}, {after: 1}, {after: 6}}, acts: "c", deaths: 1},
	{
		name:    "flow with undo",
		scripts: scripts{"W"},
		nodes:   []node{{}, {after: 1, when: ifFailed}},
		signals: []signal{{0, 0}},
		acts:    "xxz",
		deaths:  1,
		fails:   1,
	},
	{
		name:  "flow with undo, retried",
		nodes: []node{{}, {after: 1, when: ifFailed}},
		acts:  "cxy", deaths: 1, fails: 1, procs: 2,
	},
	{
		name:  "undo of two",
		nodes: []node{{}, {}, {after: 3, when: ifFailed}},
		acts:  "xx", deaths: 1, fails: 1,
	},
	{
		name:    "flow, retried",
		scripts: scripts{"W"},
		nodes:   []node{{}, {after: 1}},
		toNode:  true,
		signals: []signal{{0, 0}, {0, 1}},
		acts:    "xy",
		deaths:  1,
		fails:   1,
		procs:   2,
	},
	{name: "pruned under signals", scripts: scripts{"SW"}, signals: []signal{{0, 0}, {0, 1}}, acts: "cp", deaths: 1},
	{name: "id used again", scripts: scripts{"SS"}, signals: []signal{{0, 0}}, acts: "cpr", deaths: 1, procs: 4},
}

// cutOff is how many states of a world are explored unless more are asked for.
const cutOff = 200_000

// Protocol is the protocol with its worlds.
func Protocol() *explore.Protocol {
	p := &explore.Protocol{Name: "waits", Rules: ruleTexts[:], Most: cutOff}
	byName := map[string]world{}
	for _, w := range worlds {
		if w.procs == 0 {
			w.procs = 3
		}
		if w.workers == 0 {
			w.workers = 2
		}
		if w.start == 0 && w.nodes == nil {
			w.start = 1
		}
		p.Worlds = append(p.Worlds, w.name)
		byName[w.name] = w
	}
	p.Explore = func(name string, without explore.Rules, most int) explore.Finding {
		w := byName[name]
		if w.nodes == nil && without != 0 && without&^flowRules == 0 {
			return explore.Finding{} // there is no flow to miss it
		}
		w.removed = without
		return explore.Explore[state, label](&w, most)
	}
	return p
}
