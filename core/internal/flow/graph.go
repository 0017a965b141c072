package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// graph is the plan of a flow in a round, with what follows from it. It never changes; what it knows of its runs only
// grows. A runtime keeps it from one end of a node to the next, so that a large flow is read and decoded once.
type graph struct {
	plan       flowPlan
	place      map[string]int
	dependents [][]int

	once sync.Once
	ids  []runlane.RunID // of the latest runs, by place
	rank []int           // of each place, in the order of the ids

	mu      sync.Mutex
	version int64          // of the record, as read last
	over    []*runlane.Run // latest runs that have ended, by place: status and counters. An end never changes.
	open    []bool         // latest runs that had not ended when they were read last
}

// newGraph is that of a plan. Its nodes go after nodes that are there.
func newGraph(plan flowPlan) *graph {
	g := &graph{plan: plan, place: make(map[string]int, len(plan.Nodes))}
	for i := range plan.Nodes {
		g.place[plan.Nodes[i].Name] = i
	}
	g.index()
	return g
}

// readGraph is that of a record.
func readGraph(record *lane.FlowRecord) (*graph, error) {
	var plan flowPlan
	if err := errors.Join(json.Unmarshal(record.Plan, &plan), plan.fault()); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrInvariantViolation,
			Message: fmt.Sprintf("the graph of flow %q cannot be read", record.ID),
			Cause:   err,
		}
	}
	return newGraph(plan), nil
}

// index finds the dependents of each node.
func (g *graph) index() {
	g.dependents = make([][]int, len(g.plan.Nodes))
	for i := range g.plan.Nodes {
		for _, after := range g.plan.Nodes[i].After {
			g.dependents[after] = append(g.dependents[after], i)
		}
	}
}

// levels are the places of the nodes, those of each level before those that they go after. None: there is a cycle.
func (g *graph) levels() (levels [][]int) {
	left := make([]int, len(g.plan.Nodes))
	var level []int
	for i := range g.dependents {
		if left[i] = len(g.dependents[i]); left[i] == 0 {
			level = append(level, i)
		}
	}
	for done := 0; len(level) > 0; {
		levels = append(levels, level)
		if done += len(level); done == len(g.plan.Nodes) {
			return levels
		}
		var next []int
		for _, i := range level {
			for _, after := range g.plan.Nodes[i].After {
				if left[after]--; left[after] == 0 {
					next = append(next, after)
				}
			}
		}
		level = next
	}
	return nil
}

// cycleShown bounds how many names of a cycle an error has.
const cycleShown = 8

// cycle says which nodes of a graph without levels wait for each other.
func (g *graph) cycle() string {
	const ended = -1
	var (
		place = make([]int, len(g.plan.Nodes)) // on the way, from 1
		way   []int                            // each node goes after the next
		from  func(i int) bool
	)
	from = func(i int) bool {
		switch way = append(way, i); {
		case place[i] > 0:
			way = way[place[i]-1:]
			return true
		case place[i] != ended:
			place[i] = len(way)
			if slices.ContainsFunc(g.plan.Nodes[i].After, from) {
				return true
			}
			place[i] = ended
		}
		way = way[:len(way)-1]
		return false
	}
	for i := 0; !from(i); i++ { // ends: there is a cycle
	}
	var names []string
	for n, i := range way {
		if n == cycleShown {
			names = append(names, "…")
			break
		}
		names = append(names, strconv.Quote(g.plan.Nodes[i].Name))
	}
	return strings.Join(names, " after ")
}

// runID is the id of a node's latest run. No id comes again with another meaning: the flow's creation is in it.
func (f *Flow) runID(i int) runlane.RunID {
	f.number()
	return f.ids[i]
}

func (f *Flow) runOf(i, round int) runlane.RunID {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"flow",
		string(f.record.ID),
		fmt.Sprint(f.record.CreatedAt.UnixMilli()),
		fmt.Sprint(round),
		f.plan.Nodes[i].Name,
	}, ":")))
	return runlane.RunID("run_" + hex.EncodeToString(sum[:16]))
}

// number computes the ids of the latest runs, once.
func (f *Flow) number() {
	f.once.Do(func() {
		n := len(f.plan.Nodes)
		f.ids, f.rank = make([]runlane.RunID, n), make([]int, n)
		f.over, f.open = make([]*runlane.Run, n), make([]bool, n)
		order := f.every()
		for i := range order {
			f.ids[i] = f.runOf(i, f.plan.Nodes[i].Round)
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(string(f.ids[a]), string(f.ids[b])) })
		for rank, i := range order {
			f.rank[i] = rank
		}
	})
}

// saw keeps what was read of a node's latest run.
func (f *Flow) saw(i int, run *runlane.Run) {
	f.number()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[i] = !run.Status.Terminal(); !f.open[i] {
		f.over[i] = &runlane.Run{ID: run.ID, TaskID: run.TaskID, Status: run.Status, Counters: run.Counters}
	}
}

// openedOf is a place among some whose run had not ended when it was read last; -1 for none.
func (f *Flow) openedOf(places []int) int {
	f.number()
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.IndexFunc(places, func(i int) bool { return f.open[i] }); at >= 0 {
		return places[at]
	}
	return -1
}

// unknown are the places among some whose runs are not known to have ended, in the order of their ids, which are
// hashes: whatever order runs end in, few are read in vain.
func (f *Flow) unknown(places []int) (left []int) {
	f.number()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range places {
		if f.over[i] == nil {
			left = append(left, i)
		}
	}
	slices.SortFunc(left, func(a, b int) int { return f.rank[a] - f.rank[b] })
	return left
}

// known adds the runs of places that are known to have ended.
func (f *Flow) known(places []int, runs map[int]*runlane.Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range places {
		if run := f.over[i]; run != nil {
			runs[i] = run
		}
	}
}

// mostGraphs is how many graphs a runtime keeps.
const mostGraphs = 32

// graphs are those of flows that have not finished, by the id of the flow. Safe for concurrent use.
type graphs struct {
	mu   sync.Mutex
	kept map[runlane.FlowID]keptGraph
}

// keptGraph is a graph with what it is of.
type keptGraph struct {
	*graph
	created int64 // of the flow, in milliseconds
	round   int
}

// of reports the graph of a record: of the same flow in the same round, no older than it was seen.
func (k keptGraph) of(record *lane.FlowRecord) bool {
	if k.graph == nil || k.created != record.CreatedAt.UnixMilli() || k.round != record.Round {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	newer := record.Version >= k.version
	k.version = max(k.version, record.Version)
	return newer
}

func (g *graphs) find(id runlane.FlowID) keptGraph {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kept[id]
}

// keep keeps the graph of a record, unless the flow has finished.
func (g *graphs) keep(record *lane.FlowRecord, made *graph) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if record.Finished() {
		delete(g.kept, record.ID)
		return
	}
	if g.kept == nil {
		g.kept = map[runlane.FlowID]keptGraph{}
	}
	for id := range g.kept {
		if len(g.kept) < mostGraphs {
			break
		}
		delete(g.kept, id)
	}
	g.kept[record.ID] = keptGraph{made, record.CreatedAt.UnixMilli(), record.Round}
}
