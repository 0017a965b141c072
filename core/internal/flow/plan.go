package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/lane"
)

// flowPlan is the graph of a flow as stored in its record.
type flowPlan struct {
	Nodes []plannedNode `json:"nodes"`
	// Sum is a hash of the payloads; "" if the storage must not have one.
	Sum string `json:"sum,omitempty"`
}

// plannedNode is a node. Round is the latest round in which it got a run.
type plannedNode struct {
	Name  string            `json:"name"`
	Task  runlane.TaskID    `json:"task"`
	After []int             `json:"after,omitempty"` // indexes of nodes
	If    runlane.Condition `json:"if,omitempty"`
	Round int               `json:"round,omitempty"`
	// Before holds rounds of earlier runs: the first and the latest ones. Times is the number of all of them.
	Before []int `json:"before,omitempty"`
	Times  int   `json:"times,omitempty"`
	// End is the final status of a run that a retry kept. It is used if the run is pruned.
	End runlane.Status `json:"end,omitempty"`
	// Owed: a node with IfFailed must still undo work that began in an earlier round.
	Owed bool `json:"owed,omitempty"`
}

const (
	// maxBefore bounds the earlier rounds kept for a node. A retry repeats the latest run that was made, and several
	// rounds in a row that make none do not happen.
	maxBefore = 5
	// retryRoom is how many bytes all retries together may add to a node of the plan:
	// ,"round":90,"before":[0,86,87,88,89],"times":90,"end":"succeeded","owed":true
	retryRoom = 80
)

// addRound moves the node's latest run to Before and sets its new round.
func (n *plannedNode) addRound(round int) {
	n.Times = n.times() + 1
	n.Before = append(slices.Clone(n.Before), n.Round)
	if over := len(n.Before) - maxBefore; over > 0 {
		n.Before = slices.Delete(n.Before, 1, 1+over)
	}
	n.Round, n.End = round, ""
}

// times counts the earlier runs of the node. Older plans list all of them in Before.
func (n *plannedNode) times() int { return max(n.Times, len(n.Before)) }

// same reports whether the graphs are equal, in any state of their runs.
func (p *flowPlan) same(other *flowPlan) bool {
	return slices.EqualFunc(p.Nodes, other.Nodes, func(a, b plannedNode) bool {
		return a.Name == b.Name && a.Task == b.Task && a.If == b.If && slices.Equal(a.After, b.After)
	})
}

func (p *flowPlan) checkDependencies() error {
	for i := range p.Nodes {
		for _, after := range p.Nodes[i].After {
			if after < 0 || after >= len(p.Nodes) {
				return fmt.Errorf("node %d goes after node %d of %d", i, after, len(p.Nodes))
			}
		}
	}
	return nil
}

// plan checks a flow and builds its graph, before any read or write of the storage.
func (all *Flows) plan(f *runlane.Flow, options *runlane.FlowOptions, safe func(error) error) (*flowStart, error) {
	if f == nil {
		return nil, fail.Input("build it with runlane.NewFlow", "the flow is nil")
	}
	nodes := f.Nodes()
	if err := f.ID().Validate(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 || len(nodes) > runlane.MaxFlowNodes {
		return nil, Invalid(f.ID(), fmt.Sprintf("give it 1 to %d nodes", runlane.MaxFlowNodes), "has %d nodes",
			len(nodes))
	}
	s := &flowStart{Flow: Flow{all: all, graph: &graph{place: make(map[string]int, len(nodes))}}}
	for i := range nodes {
		name := nodes[i].Name
		if err := runlane.ValidateNodeName(name); err != nil {
			return nil, err
		}
		if _, twice := s.place[name]; twice {
			return nil, Invalid(f.ID(), "give each node its own name", "has two nodes of the name %q", name)
		}
		s.place[name] = i
	}
	sum := sha256.New()
	for i := range nodes {
		if err := s.planNode(f, &nodes[i], options, safe); err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%d:", len(nodes[i].Name))
		prepared, err := s.calls[i].Prepare()
		if err != nil {
			return nil, safe(err)
		}
		sum.Write(prepared.Payload)
	}
	if !all.Coded { // a hash would confirm a correct guess
		s.plan.Sum = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	if s.index(); len(s.levels()) == 0 {
		return nil, Invalid(f.ID(), "remove a dependency from the cycle",
			"has a cycle: %s", s.cycle())
	}
	encoded, err := json.Marshal(s.plan)
	if room := lane.MaxFlowPlanBytes - retryRoom*len(nodes); err != nil || len(encoded) > room {
		return nil, Invalid(f.ID(), "use fewer nodes, shorter names or fewer dependencies",
			"has a graph of %d bytes, more than %d", len(encoded), room)
	}
	at := all.Host.Now()
	s.record = &lane.FlowRecord{ID: f.ID(), CreatedAt: at, TendAt: at.Add(flowPatience), Plan: encoded}
	return s, nil
}

func (s *flowStart) planNode(f *runlane.Flow, n *runlane.FlowNode, options *runlane.FlowOptions, safe func(error) error) error {
	planned := plannedNode{Name: n.Name, If: n.If}
	switch n.If {
	case "":
		planned.If = runlane.IfSucceeded
	case runlane.IfSucceeded, runlane.IfFailed, runlane.Always:
	default:
		return Invalid(f.ID(), "see runlane.Condition", "has the node %q with the condition %q", n.Name, n.If)
	}
	if n.If == runlane.IfFailed && len(n.After) == 0 {
		return Invalid(f.ID(), "name the nodes that it undoes in After",
			"has the node %q with IfFailed and an empty After", n.Name)
	}
	for _, after := range n.After {
		i, known := s.place[after.Name]
		if !known || after.Flow != "" && after.Flow != f.ID() {
			return Invalid(f.ID(), "add the nodes in After to the same flow",
				"has the node %q after %q, which is not in it", n.Name, after.Name)
		}
		if !slices.Contains(planned.After, i) {
			planned.After = append(planned.After, i)
		}
	}
	prepared, err := n.Call.Prepare()
	if err != nil {
		return safe(err)
	}
	if prepared.SingletonKey != "" {
		return Invalid(f.ID(), "let a run of the node trigger such a task", "has the node %q with a singleton key",
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
	given := runlane.TriggerOptions{Queue: n.Queue, Priority: n.Priority, Actor: options.Actor, Meta: meta}
	if err := s.all.Host.Check(call, &given); err != nil {
		return err
	}
	planned.Task = n.Call.Task.ID
	s.plan.Nodes = append(s.plan.Nodes, planned)
	s.calls, s.options = append(s.calls, call), append(s.options, given)
	return nil
}

// Invalid returns the error for a bad flow or request.
func Invalid(id runlane.FlowID, hint, format string, args ...any) error {
	return fail.Input(hint, fmt.Sprintf("flow %q ", id)+format, args...)
}

// CheckPlan refuses an invalid plan from an import file.
func CheckPlan(encoded json.RawMessage) error {
	var plan flowPlan
	if err := json.Unmarshal(encoded, &plan); err != nil {
		return err
	}
	if err := plan.checkDependencies(); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range plan.Nodes {
		name := plan.Nodes[i].Name
		if err := runlane.ValidateNodeName(name); err != nil {
			return err
		}
		if names[name] {
			return errors.New("it has two nodes of one name")
		}
		names[name] = true
	}
	if len(newGraph(plan).levels()) == 0 {
		return errors.New("it has no nodes, or a cycle")
	}
	return nil
}
