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

// graph is the plan of a flow in a round, with derived data. The plan never changes; knowledge about its runs only
// grows. A runtime caches graphs, so that a large flow is read and decoded once.
type graph struct {
	plan       flowPlan
	place      map[string]int
	dependents [][]int

	once sync.Once
	ids  []runlane.RunID // of the latest runs, by node
	rank []int           // of each node in the order of ids

	mu      sync.Mutex
	version int64          // of the record at its last read
	over    []*runlane.Run // ended latest runs, by node: status and counters; final
	open    []bool         // latest runs that had not ended at their last read
}

// newGraph returns the graph of a plan with valid dependencies.
func newGraph(plan flowPlan) *graph {
	g := &graph{plan: plan, place: make(map[string]int, len(plan.Nodes))}
	for i := range plan.Nodes {
		g.place[plan.Nodes[i].Name] = i
	}
	g.index()
	return g
}

func readGraph(record *lane.FlowRecord) (*graph, error) {
	var plan flowPlan
	if err := errors.Join(json.Unmarshal(record.Plan, &plan), plan.checkDependencies()); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrInvariantViolation,
			Message: fmt.Sprintf("the graph of flow %q cannot be read", record.ID),
			Cause:   err,
		}
	}
	return newGraph(plan), nil
}

func (g *graph) index() {
	g.dependents = make([][]int, len(g.plan.Nodes))
	for i := range g.plan.Nodes {
		for _, after := range g.plan.Nodes[i].After {
			g.dependents[after] = append(g.dependents[after], i)
		}
	}
}

// levels returns the nodes in levels, dependents before their predecessors. nil: there is a cycle.
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

// cycleShown bounds the names of a cycle in an error.
const cycleShown = 8

// cycle describes a cycle in a graph without levels.
func (g *graph) cycle() string {
	const ended = -1
	var (
		place = make([]int, len(g.plan.Nodes)) // position on the path, from 1
		way   []int                            // each node comes after the next
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
	for i := 0; !from(i); i++ { // terminates, because there is a cycle
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

// runID returns the ID of a node's latest run. It includes the flow's creation time, so it is never reused with another
// meaning.
func (f *Flow) runID(i int) runlane.RunID {
	f.computeIDs()
	return f.ids[i]
}

func (f *Flow) runIDOf(i, round int) runlane.RunID {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"flow",
		string(f.record.ID),
		fmt.Sprint(f.record.CreatedAt.UnixMilli()),
		fmt.Sprint(round),
		f.plan.Nodes[i].Name,
	}, ":")))
	return runlane.RunID("run_" + hex.EncodeToString(sum[:16]))
}

// computeIDs computes the IDs of the latest runs, once.
func (f *Flow) computeIDs() {
	f.once.Do(func() {
		n := len(f.plan.Nodes)
		f.ids, f.rank = make([]runlane.RunID, n), make([]int, n)
		f.over, f.open = make([]*runlane.Run, n), make([]bool, n)
		order := f.allNodes()
		for i := range order {
			f.ids[i] = f.runIDOf(i, f.plan.Nodes[i].Round)
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(string(f.ids[a]), string(f.ids[b])) })
		for rank, i := range order {
			f.rank[i] = rank
		}
	})
}

func (f *Flow) remember(i int, run *runlane.Run) {
	f.computeIDs()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[i] = !run.Status.Terminal(); !f.open[i] {
		f.over[i] = &runlane.Run{ID: run.ID, TaskID: run.TaskID, Status: run.Status, Counters: run.Counters}
	}
}

// firstOpen returns the first of some nodes whose run had not ended at its last read; -1 for none.
func (f *Flow) firstOpen(places []int) int {
	f.computeIDs()
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.IndexFunc(places, func(i int) bool { return f.open[i] }); at >= 0 {
		return places[at]
	}
	return -1
}

// unread returns the nodes whose runs are not known to have ended, in the order of their IDs. IDs are hashes, so in
// whatever order runs end, few reads are in vain.
func (f *Flow) unread(places []int) (left []int) {
	f.computeIDs()
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

// addEnded adds the runs that are known to have ended.
func (f *Flow) addEnded(places []int, runs map[int]*runlane.Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range places {
		if run := f.over[i]; run != nil {
			runs[i] = run
		}
	}
}

// mostGraphs is the size of a runtime's cache of graphs.
const mostGraphs = 32

// graphs caches graphs of unfinished flows by flow ID. Safe for concurrent use.
type graphs struct {
	mu   sync.Mutex
	kept map[runlane.FlowID]keptGraph
}

type keptGraph struct {
	*graph
	created int64 // the flow's creation in milliseconds
	round   int
}

// of reports whether this is the graph of a record: the same flow in the same round, not older than last seen.
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

// keep caches the graph of a record, unless the flow has finished.
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
