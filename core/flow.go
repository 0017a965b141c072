package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/blind"
	"github.com/runlane/runlane-go/lane"
)

// flowPatience is how long the runs of a flow may take to be made. After it, a tick takes the maker for dead and closes
// the flow.
const flowPatience = time.Hour

// flowPlan is the graph of a flow as its record keeps it.
type flowPlan struct {
	Nodes []plannedNode `json:"nodes"`
	// Sum tells other payloads; "" where the storage must not learn of them.
	Sum string `json:"sum,omitempty"`
}

// plannedNode is a node. Of every retry that made another run of it, Round is that of the latest.
type plannedNode struct {
	Name  string            `json:"name"`
	Task  runlane.TaskID    `json:"task"`
	After []int             `json:"after,omitempty"` // places of nodes
	If    runlane.Condition `json:"if,omitempty"`
	Round int               `json:"round,omitempty"`
	// Before are rounds of earlier runs: the first, and the latest of the others. Times is how many there were.
	Before []int `json:"before,omitempty"`
	Times  int   `json:"times,omitempty"`
	// End is how the run had ended that a retry left as it is: it counts where the run is pruned since.
	End runlane.Status `json:"end,omitempty"`
	// Owed says of a node with IfFailed that what it undoes had begun in an earlier round and was not undone there.
	Owed bool `json:"owed,omitempty"`
}

const (
	// maxBefore is how many rounds of earlier runs a node names: a retry repeats the latest run that was made, and more
	// than a few rounds in a row that made none are none at all.
	maxBefore = 5
	// retryRoom is how many bytes retries may add to a node of the plan, however many there are:
	// ,"round":90,"before":[0,86,87,88,89],"times":90,"end":"succeeded","owed":true
	retryRoom = 80
)

// replaced notes that the node gets another run, in a round.
func (n *plannedNode) replaced(round int) {
	n.Times = n.times() + 1
	n.Before = append(slices.Clone(n.Before), n.Round)
	if over := len(n.Before) - maxBefore; over > 0 {
		n.Before = slices.Delete(n.Before, 1, 1+over)
	}
	n.Round, n.End = round, ""
}

// times is how many runs of the node there were before the latest. Older plans name all of them.
func (n *plannedNode) times() int { return max(n.Times, len(n.Before)) }

// flow is a flow as it was read.
type flow struct {
	rt     *Runtime
	record *lane.FlowRecord
	*graph
}

// StartFlow makes the runs of a flow durable: those that go after others wait for them. A flow of this id with the same
// nodes is returned as it is, and made complete where an earlier call was interrupted, so a call whose outcome is
// unknown is repeated. Nodes run by the rules of their tasks, but have no idempotency keys: their ids make each of them
// once. Errors, before anything was written:
//
//   - runlane.ErrValidationFailed: a bad id, name or payload; no nodes, or more than runlane.MaxFlowNodes; two nodes of
//     a name, one after an unknown node, one with runlane.IfFailed after none, a cycle; a task with a singleton key, which another run might hold; a flow of
//     this id that has other nodes.
//   - runlane.ErrConfigurationInvalid: a bad definition, or a queue that has no binding.
//   - runlane.ErrCapabilityUnsupported: the storage keeps no flows.
//
// A flow whose start was interrupted for more than an hour is cancelled by a tick.
func (rt *Runtime) StartFlow(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions,
) (*runlane.FlowState, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if options == nil {
		options = &runlane.FlowOptions{}
	}
	s, err := rt.planFlow(f, options)
	if err != nil {
		return nil, err
	}
	started, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if !started.record.TendAt.IsZero() && started.record.Closed == 0 {
		again := started != &s.flow
		err = started.make(ctx, again, func(ctx context.Context, i int) error { return s.makeNode(ctx, started, i) })
		if err != nil {
			return nil, err
		}
	}
	return started.state(ctx)
}

// flowStart is a flow on its way to be made.
type flowStart struct {
	flow
	calls   []runlane.Call // encoded
	options []runlane.TriggerOptions
}

// planFlow refuses what can be no flow, before anything is read or written.
func (rt *Runtime) planFlow(f *runlane.Flow, options *runlane.FlowOptions) (*flowStart, error) {
	if err := rt.suspends(); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, invalidInput("build it with runlane.NewFlow", "the flow is nil")
	}
	nodes := f.Nodes()
	if err := f.ID().Validate(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 || len(nodes) > runlane.MaxFlowNodes {
		return nil, flowInvalid(f.ID(), fmt.Sprintf("give it 1 to %d nodes", runlane.MaxFlowNodes), "has %d nodes",
			len(nodes))
	}
	s := &flowStart{flow: flow{rt: rt, graph: &graph{place: make(map[string]int, len(nodes))}}}
	for i := range nodes {
		name := nodes[i].Name
		if err := runlane.ValidateNodeName(name); err != nil {
			return nil, err
		}
		if _, twice := s.place[name]; twice {
			return nil, flowInvalid(f.ID(), "give each node its own name", "has two nodes of the name %q", name)
		}
		s.place[name] = i
	}
	sum := sha256.New()
	for i := range nodes {
		if err := s.planNode(f, &nodes[i], options); err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%d:", len(nodes[i].Name))
		prepared, err := s.calls[i].Prepare()
		if err != nil {
			return nil, safeError(err)
		}
		sum.Write(prepared.Payload)
	}
	if !rt.coded { // a hash would confirm a correct guess of the payloads
		s.plan.Sum = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	if s.index(); len(s.levels()) == 0 {
		return nil, flowInvalid(f.ID(), "let each node go after nodes that need not wait for it",
			"has a cycle: %s", s.cycle())
	}
	encoded, err := json.Marshal(s.plan)
	if room := lane.MaxFlowPlanBytes - retryRoom*len(nodes); err != nil || len(encoded) > room {
		return nil, flowInvalid(f.ID(), "use fewer nodes, shorter names or fewer dependencies",
			"has a graph of %d bytes, more than %d", len(encoded), room)
	}
	at := rt.now()
	s.record = &lane.FlowRecord{ID: f.ID(), CreatedAt: at, TendAt: at.Add(flowPatience), Plan: encoded}
	return s, nil
}

// planNode adds a node to the plan.
func (s *flowStart) planNode(f *runlane.Flow, n *runlane.FlowNode, options *runlane.FlowOptions) error {
	planned := plannedNode{Name: n.Name, If: n.If}
	switch n.If {
	case "":
		planned.If = runlane.IfSucceeded
	case runlane.IfSucceeded, runlane.IfFailed, runlane.Always:
	default:
		return flowInvalid(f.ID(), "see runlane.Condition", "has the node %q with the condition %q", n.Name, n.If)
	}
	if n.If == runlane.IfFailed && len(n.After) == 0 {
		return flowInvalid(f.ID(), "name in After what it undoes: a node without one begins at once",
			"has the node %q, which is to run after a failure of no node", n.Name)
	}
	for _, after := range n.After {
		i, known := s.place[after.Name]
		if !known || after.Flow != "" && after.Flow != f.ID() {
			return flowInvalid(f.ID(), "add each node that another one goes after to the same flow",
				"has the node %q after %q, which is none of it", n.Name, after.Name)
		}
		if !slices.Contains(planned.After, i) {
			planned.After = append(planned.After, i)
		}
	}
	prepared, err := n.Call.Prepare()
	if err != nil {
		return safeError(err)
	}
	if prepared.SingletonKey != "" {
		return flowInvalid(f.ID(), "let a run of the node trigger such a task", "has the node %q with a singleton key",
			n.Name)
	}
	call := runlane.NewRawCall(n.Call.Task, prepared.Payload)
	meta := maps.Clone(options.Meta)
	if len(n.Meta) > 0 {
		if meta == nil {
			meta = map[string]string{}
		}
		maps.Copy(meta, n.Meta)
	}
	given := runlane.TriggerOptions{Queue: n.Queue, Actor: options.Actor, Meta: meta}
	p := &plan{options: &given, node: &lane.FlowCheck{}}
	if err := s.rt.prepare(p, call); err != nil {
		return err
	}
	planned.Task = n.Call.Task.ID
	s.plan.Nodes = append(s.plan.Nodes, planned)
	s.calls, s.options = append(s.calls, call), append(s.options, given)
	return nil
}

func flowInvalid(id runlane.FlowID, hint, format string, args ...any) error {
	return invalidInput(hint, fmt.Sprintf("flow %q ", id)+format, args...)
}

// begin puts the record of the flow, or finds the one that is there. Payloads are compared where both tell of them: a
// codec may have been given, or taken away, since. Who may not learn payloads gets the flow as it is.
func (s *flowStart) begin(ctx context.Context) (*flow, error) {
	record, err := s.rt.storage().PutFlow(ctx, &lane.FlowCommand{Environment: s.rt.environment, Flow: *s.record})
	if err == nil {
		s.record, s.version = record, record.Version
		s.rt.graphs.keep(record, s.graph)
		return &s.flow, nil
	}
	if !isConflict(err, runlane.ConflictFlow) {
		return nil, err
	}
	known, err := s.rt.flow(ctx, s.record.ID)
	if err != nil {
		return nil, err
	}
	alike := s.plan.Sum == "" || known.plan.Sum == "" || s.plan.Sum == known.plan.Sum
	if !s.plan.same(&known.plan) || !alike && !blind.Is(ctx) {
		return nil, flowInvalid(s.record.ID, "a flow's id names one graph, with its payloads: use another id",
			"is there, with other nodes or payloads")
	}
	if known.record.Round > 0 || !alike { // a retry makes its runs, or who has its payloads
		known.record.TendAt = time.Time{}
	}
	return known, nil
}

// same reports an equal graph, in whatever state its runs are.
func (p *flowPlan) same(other *flowPlan) bool {
	return slices.EqualFunc(p.Nodes, other.Nodes, func(a, b plannedNode) bool {
		return a.Name == b.Name && a.Task == b.Task && a.If == b.If && slices.Equal(a.After, b.After)
	})
}

// flow reads a flow. Its graph is read where this runtime does not have it: the record may be without its plan.
func (rt *Runtime) flow(ctx context.Context, id runlane.FlowID) (*flow, error) {
	kept := rt.graphs.find(id)
	if kept.graph != nil {
		record, err := rt.readFlow(ctx, id, true)
		if err != nil {
			return nil, err
		}
		if kept.of(record) {
			rt.graphs.keep(record, kept.graph)
			return &flow{rt: rt, record: record, graph: kept.graph}, nil
		}
	}
	record, err := rt.readFlow(ctx, id, false)
	if err != nil {
		return nil, err
	}
	f := &flow{rt: rt, record: record}
	if f.graph, err = readGraph(record); err != nil {
		return nil, err
	}
	f.version = record.Version
	rt.graphs.keep(record, f.graph)
	return f, nil
}

func (rt *Runtime) readFlow(ctx context.Context, id runlane.FlowID, withoutPlan bool) (*lane.FlowRecord, error) {
	key := lane.FlowKey{Environment: rt.environment, FlowID: id}
	return rt.storage().GetFlow(ctx, &lane.FlowRead{FlowKey: key, WithoutPlan: withoutPlan})
}

// fault is a dependency on a node that is not there.
func (p *flowPlan) fault() error {
	for i := range p.Nodes {
		for _, after := range p.Nodes[i].After {
			if after < 0 || after >= len(p.Nodes) {
				return fmt.Errorf("node %d goes after node %d of %d", i, after, len(p.Nodes))
			}
		}
	}
	return nil
}

// source is where a node's run of a round comes from.
func (f *flow) source(i, round int) runlane.Source {
	return runlane.Source{
		Type:      runlane.SourceFlow,
		FlowID:    f.record.ID,
		Node:      f.plan.Nodes[i].Name,
		Round:     round,
		CreatedAt: f.record.CreatedAt,
	}
}

// make makes the runs of this round that are missing, those that wait before those that they wait for, and records that
// all are there. One that is found closed is left to who closed it. Where some were made before, again says so: they
// are read first, or a long chain would cost the same again each time and never be whole.
func (f *flow) make(ctx context.Context, again bool, one func(ctx context.Context, i int) error) error {
	var there map[int]*runlane.Run
	if again {
		var places []int
		for i := range f.plan.Nodes {
			if f.plan.Nodes[i].Round == f.record.Round {
				places = append(places, i)
			}
		}
		var err error
		if there, err = f.read(ctx, places); err != nil {
			return err
		}
	}
	for _, level := range f.levels() {
		err := inParallel(len(level), func(n int) error {
			i := level[n]
			if ctx.Err() != nil {
				return cancelled(ctx, "")
			}
			if f.plan.Nodes[i].Round != f.record.Round || there[i] != nil {
				return nil
			}
			return one(ctx, i)
		})
		if isConflict(err, runlane.ConflictFlow) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return f.complete(ctx)
}

// makeNode makes one run of a new flow.
func (s *flowStart) makeNode(ctx context.Context, f *flow, i int) error {
	options := s.options[i]
	options.RunID = f.runID(i)
	p := plans.Get().(*plan)
	defer p.done()
	p.options, p.node = &options, &lane.FlowCheck{FlowID: f.record.ID, Round: f.record.Round}
	if err := s.rt.prepare(p, s.calls[i]); err != nil {
		return err
	}
	return f.create(ctx, p, i)
}

// create makes a planned run of a node, once.
func (f *flow) create(ctx context.Context, p *plan, i int) error {
	p.source = f.source(i, f.plan.Nodes[i].Round)
	if need := f.waitsFor(i); need > 0 {
		p.wait = &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: need}
		p.availableAt = p.wait.Due()
	}
	_, commit, err := f.rt.resolve(ctx, p, f.rt.create)
	if commit != nil {
		f.rt.announce(ctx, p, commit)
	}
	return err
}

// waitsFor is how many ends a node of this round waits for: those of runs that this round makes.
func (f *flow) waitsFor(i int) (need int) {
	for _, after := range f.plan.Nodes[i].After {
		if f.plan.Nodes[after].Round == f.record.Round {
			need++
		}
	}
	return need
}

// complete records that every run of the round is there.
func (f *flow) complete(ctx context.Context) error {
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		made := record.Closed == 0 && !record.TendAt.IsZero()
		record.TendAt = time.Time{}
		return made
	})
	return err
}

// change writes the record as by changes it, while the flow is in the same round and has not finished, on the record as
// it was read last. by reports whether there is anything to write. changed is false where there was not.
func (f *flow) change(ctx context.Context, by func(record *lane.FlowRecord) bool) (changed bool, err error) {
	for range changeRounds {
		next := *f.record
		if next.Finished() || !by(&next) {
			return false, nil
		}
		next.Plan = nil
		command := &lane.FlowCommand{Environment: f.rt.environment, Flow: next}
		put, err := f.rt.storage().PutFlow(ctx, command)
		if err == nil {
			put.Plan = f.record.Plan
			f.record = put
			return true, nil
		}
		if !isConflict(err, runlane.ConflictFlow) {
			return false, err
		}
		now, err := f.rt.flow(ctx, f.record.ID)
		switch {
		case errors.Is(err, runlane.ErrFlowNotFound):
			return false, nil
		case err != nil:
			return false, err
		case now.record.Round != f.record.Round || !now.record.CreatedAt.Equal(f.record.CreatedAt):
			return false, nil
		}
		*f = *now
	}
	return false, runlane.NewConflict(runlane.ConflictFlow, fmt.Sprintf("flow %q changed during each try", f.record.ID))
}
