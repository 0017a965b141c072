package runlane

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Bounds of flows.
const (
	// MaxFlowNodes is the maximum number of nodes of a flow.
	MaxFlowNodes = 1000
	// MaxFlowRetries is the maximum number of retries of a flow.
	MaxFlowRetries   = 90
	MaxNodeNameBytes = 64
)

// FlowID names a flow, by the rules of a [RunID].
type FlowID string

// Validate returns [ErrValidationFailed] if the ID is invalid.
func (id FlowID) Validate() error { return validateID("flow id", string(id)) }

// Flow is a graph of runs without a parent run: each begins when the nodes in its After have ended. Build it with
// [NewFlow] and [Flow.Add], start it with core.Runtime.StartFlow. Starting the same flow again changes nothing, so
// build flows with pure functions. Adding nodes is not safe for concurrent use.
type Flow struct {
	id    FlowID
	nodes []FlowNode
}

// FlowNode is a node as added to a [Flow].
type FlowNode struct {
	Name string
	Call Call
	NodeOptions
}

// NewFlow returns an empty graph.
func NewFlow(id FlowID) *Flow { return &Flow{id: id} }

// ID returns the flow's ID.
func (f *Flow) ID() FlowID { return f.id }

// Nodes returns the nodes in the order in which they were added.
func (f *Flow) Nodes() []FlowNode { return f.nodes }

// Add adds a run. Its faults (a duplicate name, an unknown node, a cycle, a bad payload) surface in StartFlow, before
// anything is written. nil options mean a node that begins at once.
func (f *Flow) Add(name string, call Call, options *NodeOptions) Node {
	n := FlowNode{Name: name, Call: call}
	if options != nil {
		n.NodeOptions = *options
	}
	f.nodes = append(f.nodes, n)
	return Node{Flow: f.id, Name: name}
}

// Node names a run by its place in a flow. It stays the same when a retry of the flow makes new runs. In [NodeOptions]
// the flow may be omitted: Node{Name: "build"}.
type Node struct {
	Flow FlowID `json:"flow,omitempty"`
	Name string `json:"name"`
}

// ValidateNodeName checks the name of a node: 1 to [MaxNodeNameBytes] bytes of printable text without ':'. The error is
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
	// After lists the nodes that must end first. Without any, the node begins at once.
	After []Node
	// If is the condition on their ends. "" means [IfSucceeded]. A node is cancelled if its condition is not met.
	If Condition
	// Queue of the runs. The zero value means the task's.
	Queue Queue
	// Priority of the runs, see [TriggerOptions].
	Priority int
	// Meta is stored with each of the runs, see [TriggerOptions].
	Meta map[string]string
}

// Condition is a node's condition on the ends of its predecessors.
type Condition string

// The conditions.
const (
	// IfSucceeded runs if all have succeeded. The default.
	IfSucceeded Condition = "succeeded"
	// IfFailed runs if at least one had begun and did not succeed, for any reason: undo, roll back, alert. A node that
	// never began, because its own condition was not met or the flow was cancelled first, needs no undoing. The node
	// needs at least one predecessor.
	IfFailed Condition = "failed"
	// Always runs once all have ended.
	Always Condition = "always"
)

// FlowStatus is derived from the runs of a flow and from its cancellation.
type FlowStatus string

// The statuses of a flow.
const (
	// FlowPending: no run is made yet.
	FlowPending FlowStatus = "pending"
	// FlowActive: at least one run is due, executes, or continues by itself.
	FlowActive FlowStatus = "active"
	// FlowWaiting: all unended runs wait for signals, input or an operator, or come after a run that does.
	FlowWaiting FlowStatus = "waiting"
	// FlowCompleted: every run succeeded or was cancelled, and at least one succeeded.
	FlowCompleted FlowStatus = "completed"
	// FlowFailed: every run has ended, and at least one failed.
	FlowFailed FlowStatus = "failed"
	// FlowCancelled: the flow was cancelled and every run has ended, or every run was cancelled.
	FlowCancelled FlowStatus = "cancelled"
)

// FlowStatuses lists the statuses of flows.
func FlowStatuses() []FlowStatus {
	return []FlowStatus{FlowPending, FlowActive, FlowWaiting, FlowCompleted, FlowFailed, FlowCancelled}
}

// Ended reports whether only a retry of the flow can change it.
func (s FlowStatus) Ended() bool { return s == FlowCompleted || s == FlowFailed || s == FlowCancelled }

// FlowState is the current state of a flow.
type FlowState struct {
	ID     FlowID     `json:"flowId"`
	Status FlowStatus `json:"status"`
	// Nodes are in the order in which they were added. Lists omit them.
	Nodes []NodeState `json:"nodes,omitempty"`
	// Retries is the number of retries of the flow.
	Retries int `json:"retries,omitempty"`
	// Cancelled: the flow was cancelled since its last retry.
	Cancelled bool      `json:"cancelled,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// FinishedAt is when the end of the last run was noticed.
	FinishedAt time.Time `json:"finishedAt,omitzero"`
}

// NodeState is a node with its latest run.
type NodeState struct {
	Name  string    `json:"name"`
	After []string  `json:"after,omitempty"`
	If    Condition `json:"if,omitempty"`
	// RunID of the latest run, known from the beginning.
	RunID  RunID  `json:"runId"`
	TaskID TaskID `json:"taskId"`
	// Status of the run. "" if it is not made yet, or never will be because the flow was cancelled first.
	Status Status `json:"status,omitempty"`
	// Waiting is the run's wait, or nil.
	Waiting  *Waiting `json:"waiting,omitempty"`
	Failure  Failure  `json:"failure,omitzero"`
	Attempts int      `json:"attempts,omitempty"`
	// Retries is the number of earlier runs of the node.
	Retries int `json:"retries,omitempty"`
	// OutputBytes is the size of the run's output, if core.Flows.ReadSizes has read it.
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

// String returns the flow as text, one line for each node.
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

// Mermaid returns the flow as a Mermaid diagram, with no text other than names and statuses.
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

// mermaidText escapes names so that they cannot end their label.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", ";", "#59;")

// Words returns the node's status in words: "not made", "waits" for other nodes, or the run's status.
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
	// Actor who starts the flow. The zero value means the system.
	Actor Actor
	// Meta is stored with each of the runs. The meta of [NodeOptions] takes precedence.
	Meta map[string]string
}

// Ref is a reference to the result of a flow's node, which may not exist yet. Its JSON is small: put it into payloads,
// and read the result where it is needed.
type Ref[R any] struct {
	Node Node   `json:"node"`
	Task TaskID `json:"taskId"`
}

// Ref refers to the result of a node of this task.
func (f *Func[P, R]) Ref(node Node) Ref[R] { return Ref[R]{Node: node, Task: f.definition.ID} }

// NodeWaiter returns the latest run of a node once it has ended. *core.Runtime blocks until then; *Attempt returns
// [ErrValidationFailed] if the run has not ended: put the node into the After of the caller's node.
type NodeWaiter interface {
	WaitNode(ctx context.Context, node Node) (*Run, error)
}

var _ NodeWaiter = (*Attempt)(nil)

// Wait returns the result of the node's latest run. Errors are the ones of [NodeWaiter] and, for a run that did not
// succeed, of [Func.Call]. An unknown flow is [ErrFlowNotFound], an unknown node [ErrValidationFailed].
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

// WaitNode returns the latest run of an ended node, see [NodeWaiter].
func (a *Attempt) WaitNode(ctx context.Context, node Node) (*Run, error) {
	if a.host.Nodes == nil {
		return nil, noHost("for flows")
	}
	return a.host.Nodes.WaitNode(ctx, node)
}
