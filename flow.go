package runlane

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Bounds of flows.
const (
	// MaxFlowNodes is how many runs one flow may have.
	MaxFlowNodes = 1000
	// MaxFlowRetries is how often one flow may be retried.
	MaxFlowRetries = 90
	// MaxNodeNameBytes bounds the name of a node.
	MaxNodeNameBytes = 64
)

// FlowID names a flow, like a [RunID] its run, by the same rules.
type FlowID string

// Validate reports an id that breaks the rules of ids as [ErrValidationFailed].
func (id FlowID) Validate() error { return validateID("flow id", string(id)) }

// Flow is a graph of runs without a run above them: each begins when those that it goes after have ended. Build it with
// [NewFlow] and [Flow.Add], start it with core.Runtime.StartFlow. The same flow started again changes nothing, so
// builders are functions of their arguments. Not safe for concurrent use while nodes are added.
type Flow struct {
	id    FlowID
	nodes []FlowNode
}

// FlowNode is a node as it was added to a [Flow].
type FlowNode struct {
	Name string
	Call Call
	NodeOptions
}

// NewFlow begins a graph.
func NewFlow(id FlowID) *Flow { return &Flow{id: id} }

// ID is the flow's.
func (f *Flow) ID() FlowID { return f.id }

// Nodes are those that were added, in that order.
func (f *Flow) Nodes() []FlowNode { return f.nodes }

// Add adds a run. What is wrong with it (a name that is there twice, an unknown node, a cycle, a bad payload) surfaces
// in StartFlow, before anything is written. nil options mean a node that begins at once.
func (f *Flow) Add(name string, call Call, options *NodeOptions) Node {
	n := FlowNode{Name: name, Call: call}
	if options != nil {
		n.NodeOptions = *options
	}
	f.nodes = append(f.nodes, n)
	return Node{Flow: f.id, Name: name}
}

// Node names a run by its place in a flow. It stays the same when the flow is retried, which makes new runs. In
// [NodeOptions] the flow may be left out: Node{Name: "build"}.
type Node struct {
	Flow FlowID `json:"flow,omitempty"`
	Name string `json:"name"`
}

// ValidateNodeName checks the name of a node: 1 to [MaxNodeNameBytes] bytes of printable text without ':'. A bad one is
// [ErrValidationFailed].
func ValidateNodeName(name string) error {
	fault := textFault(name, ':')
	switch {
	case name == "":
		fault = "is empty"
	case len(name) > MaxNodeNameBytes:
		fault = fmt.Sprintf("has %d bytes", len(name))
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: "a node's name " + fault,
		Hint:    fmt.Sprintf("use 1 to %d bytes of printable text without ':'", MaxNodeNameBytes),
	}
}

// NodeOptions of [Flow.Add].
type NodeOptions struct {
	// After are the nodes that have to end before. None: the node begins at once.
	After []Node
	// If is what their ends have to be. "" means [IfSucceeded]. A node whose condition is not met is cancelled.
	If Condition
	// Queue of the runs. The zero value means the task's.
	Queue Queue
	// Meta is kept with each of the runs, see [TriggerOptions].
	Meta map[string]string
}

// Condition says after which ends a node runs.
type Condition string

// The conditions.
const (
	// IfSucceeded runs when all have succeeded. The default.
	IfSucceeded Condition = "succeeded"
	// IfFailed runs when at least one had begun and did not succeed, however that came about: undo, roll back, alert. A
	// node that never began, because its own condition was not met or the flow was cancelled before, asks for no
	// undoing. It has to go after at least one node.
	IfFailed Condition = "failed"
	// Always runs once all have ended.
	Always Condition = "always"
)

// FlowStatus is derived from the runs of a flow, and from whether it was cancelled.
type FlowStatus string

// The statuses of a flow.
const (
	// FlowPending: no run was made yet.
	FlowPending FlowStatus = "pending"
	// FlowActive: at least one run is due, executes, or goes on by itself.
	FlowActive FlowStatus = "active"
	// FlowWaiting: what has not ended waits for signals, input or an operator, or goes after what does.
	FlowWaiting FlowStatus = "waiting"
	// FlowCompleted: every run has succeeded or was cancelled, and one at least has succeeded.
	FlowCompleted FlowStatus = "completed"
	// FlowFailed: every run has ended, and one at least has failed.
	FlowFailed FlowStatus = "failed"
	// FlowCancelled: the flow was cancelled and every run has ended, or every run was cancelled.
	FlowCancelled FlowStatus = "cancelled"
)

// FlowStatuses lists the statuses of flows.
func FlowStatuses() []FlowStatus {
	return []FlowStatus{FlowPending, FlowActive, FlowWaiting, FlowCompleted, FlowFailed, FlowCancelled}
}

// Ended reports that nothing will change unless the flow is retried.
func (s FlowStatus) Ended() bool { return s == FlowCompleted || s == FlowFailed || s == FlowCancelled }

// FlowState is a flow as it is now.
type FlowState struct {
	ID     FlowID     `json:"flowId"`
	Status FlowStatus `json:"status"`
	// Nodes are in the order of their adding. Lists leave them out.
	Nodes []NodeState `json:"nodes,omitempty"`
	// Retries is how often the flow was retried.
	Retries int `json:"retries,omitempty"`
	// Cancelled says that the flow was cancelled, since it was last retried.
	Cancelled bool      `json:"cancelled,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// FinishedAt is when the last run was seen to have ended.
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}

// NodeState is a node with its latest run.
type NodeState struct {
	Name  string    `json:"name"`
	After []string  `json:"after,omitempty"`
	If    Condition `json:"if,omitempty"`
	// RunID names the latest run. It is there from the beginning.
	RunID RunID `json:"runId"`
	// TaskID is the run's task.
	TaskID TaskID `json:"taskId"`
	// Status is the run's. "" where the run is not made: yet, or for ever in a flow that was cancelled before.
	Status Status `json:"status,omitempty"`
	// Waiting is what the run waits for; nil for nothing.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Failure is that of the run's last attempt.
	Failure Failure `json:"failure,omitzero"`
	// Attempts counts those of the run.
	Attempts int `json:"attempts,omitempty"`
	// Retries counts the runs of the node before this one.
	Retries int `json:"retries,omitempty"`
	// OutputBytes is the size of the run's output, where core.Flows.ReadSizes has read it.
	OutputBytes int `json:"outputBytes,omitempty"`
}

// Node finds a node by its name.
func (s *FlowState) Node(name string) (NodeState, bool) {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return NodeState{}, false
}

// String is the flow as text, a line for each node.
func (s *FlowState) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.ID, s.Status)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(&b, "\n  %s %s", n.Name, n.Words())
		if len(n.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(n.After, ", "))
		}
		if n.If != "" && n.If != IfSucceeded {
			fmt.Fprintf(&b, " if %s", n.If)
		}
	}
	return b.String()
}

// Mermaid is the flow as a diagram in the language of that name, without text of other than names and statuses.
func (s *FlowState) Mermaid() string {
	var b strings.Builder
	b.WriteString("graph LR\n")
	place := make(map[string]int, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place[n.Name] = i
		fmt.Fprintf(&b, "  n%d[\"%s<br/>%s\"]\n", i, mermaidText.Replace(n.Name), n.Words())
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, after := range n.After {
			if n.If == "" || n.If == IfSucceeded {
				fmt.Fprintf(&b, "  n%d --> n%d\n", place[after], i)
			} else {
				fmt.Fprintf(&b, "  n%d -. %s .-> n%d\n", place[after], n.If, i)
			}
		}
	}
	return b.String()
}

// mermaidText writes names so that they cannot end the label in which they stand.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", ";", "#59;")

// Words is the node's status as a person reads it: "not made", "waits" for others of its flow, or that of its run.
func (n *NodeState) Words() string {
	switch {
	case n.Status == "":
		return "not made"
	case n.Waiting.Has(WaitingEnds):
		return "waits"
	default:
		return string(n.Status)
	}
}

// FlowOptions of core.Runtime.StartFlow. nil means none.
type FlowOptions struct {
	// Actor is who starts the flow. The zero value means the system.
	Actor Actor
	// Meta is kept with each of the runs, besides that of [NodeOptions], which goes first.
	Meta map[string]string
}

// Ref names a result that need not be there yet: that of a node of a flow. Its JSON is small: put it into payloads, and
// read the result where it is needed.
type Ref[R any] struct {
	Node Node   `json:"node"`
	Task TaskID `json:"taskId"`
}

// Ref names the result of a node of this task.
func (f *Func[P, R]) Ref(node Node) Ref[R] { return Ref[R]{Node: node, Task: f.definition.ID} }

// NodeWaiter finds the latest run of a node once it has ended. *core.Runtime blocks until then; *Attempt refuses a node
// whose run has not ended as [ErrValidationFailed]: let the node of the run go after it.
type NodeWaiter interface {
	WaitNode(ctx context.Context, node Node) (*Run, error)
}

var _ NodeWaiter = (*Attempt)(nil)

// Wait returns the result of the node's latest run. Errors are those of [NodeWaiter], and those of [Func.Call] for a
// run that did not succeed. An absent flow or node is [ErrFlowNotFound] or [ErrValidationFailed].
func (r Ref[R]) Wait(ctx context.Context, w NodeWaiter) (R, error) {
	run, err := w.WaitNode(ctx, r.Node)
	if err != nil {
		var zero R
		return zero, err
	}
	value, err := resultOf[R](r.Task, run)
	if _, handled := w.(*Attempt); handled {
		err = Permanent(err)
	}
	return value, err
}

// WaitNode returns the latest run of a node that has ended, see [NodeWaiter].
func (a *Attempt) WaitNode(ctx context.Context, node Node) (*Run, error) {
	if a.host.Nodes == nil {
		return nil, noHost("flows")
	}
	return a.host.Nodes.WaitNode(ctx, node)
}
