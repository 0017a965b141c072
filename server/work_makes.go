package server

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// An attempt of a client can create runs and flows, send signals, and wait for the runs that it calls.

type blockBody struct {
	claimToken
	Reason string `json:"reason" required:"true" doc:"what is to be done before an operator resumes the run"`
}

func blockRun(ctx context.Context, _ *call, claim *core.Claim, body *blockBody) (*reply, error) {
	if body.Reason == "" {
		return nil, badInput("reason is missing", "say what an operator has to do before the run goes on")
	}
	return outcome(claim, claim.Block(ctx, body.Reason))
}

type snapshotBody struct {
	claimToken
	Name  string          `json:"name" required:"true" doc:"the identity of the snapshot for the life of the run"`
	Value json.RawMessage `json:"value" doc:"any JSON, kept byte by byte; none unless given"`
}

func keepSnapshot(ctx context.Context, _ *call, claim *core.Claim, body *snapshotBody) (*reply, error) {
	kept, err := claim.Snapshot(ctx, body.Name, body.Value)
	if err != nil {
		return nil, err
	}
	return object("step", kept), nil
}

type claimTriggerBody struct {
	claimToken
	triggerBody
}

func triggerByClaim(ctx context.Context, c *call, claim *core.Claim, body *claimTriggerBody) (*reply, error) {
	item, err := c.item(ctx, &body.triggerBody)
	if err != nil {
		return nil, err
	}
	result, err := claim.Trigger(ctx, item.Call, item.Options)
	if err != nil {
		return nil, err
	}
	return c.triggered(result), nil
}

type claimSignalBody struct {
	claimToken
	Run  named[runlane.RunID]  `json:"runId" doc:"the run; or flow and node"`
	Flow named[runlane.FlowID] `json:"flow" doc:"the flow of the node"`
	Node string                `json:"node" doc:"the name of the node; its latest run gets the signal"`
	signalBody
}

func signalByClaim(ctx context.Context, c *call, claim *core.Claim, body *claimSignalBody) (*reply, error) {
	node := runlane.Node{Flow: body.Flow.ID, Name: body.Node}
	if (body.Run.ID == "") == (node == runlane.Node{}) {
		return nil, badInput("the signal is for no one, or for several", "give runId, or flow and node")
	}
	value := runlane.NewRawSignal(body.Name, orNull(body.Body))
	options := &runlane.SignalOptions{ID: body.ID, Receipt: &runlane.SignalReceipt{}}
	if body.Run.ID != "" {
		if err := claim.Signal(ctx, body.Run.ID, value, options); err != nil {
			return nil, err
		}
		return c.changed(ctx, body.Run.ID, options.Receipt)
	}
	if err := claim.SignalNode(ctx, node, value, options); err != nil {
		return nil, err
	}
	return c.changedNode(ctx, node, options.Receipt)
}

type callBody struct {
	claimToken
	Task     named[runlane.TaskID]    `json:"task" required:"true" doc:"the task of the runs"`
	Name     string                   `json:"name" doc:"the identity of the call in its run; task unless given"`
	Payloads []json.RawMessage        `json:"payloads" required:"true" doc:"one of each run, any JSON"`
	Queue    named[runlane.QueueName] `json:"queue" doc:"a queue in place of the task's"`
	Meta     map[string]string        `json:"meta" doc:"kept with each of the runs"`
	Foreign  bool                     `json:"foreign" doc:"take the name of the task without looking it up"`
}

func callRuns(ctx context.Context, c *call, claim *core.Claim, body *callBody) (*reply, error) {
	request := runlane.CallRequest{CallOptions: runlane.CallOptions{Name: body.Name, Meta: body.Meta}}
	if request.Name == "" {
		request.Name = string(body.Task.ID)
	}
	for _, payload := range body.Payloads {
		made, err := c.derived(ctx, &triggerBody{
			Task:    body.Task,
			Payload: payload,
			Queue:   body.Queue,
			Foreign: body.Foreign,
		})
		if err != nil {
			return nil, err
		}
		request.Calls, request.Queue = append(request.Calls, made.Call), made.Options.Queue
	}
	runs, err := claim.CallRuns(ctx, request)
	if err != nil && !runlane.Suspended(err) {
		return nil, err
	}
	return object("called", shown.CallAnswerOf(claim.Run.ID, runs, err != nil)), nil
}

// derived looks up the task of a run with a derived ID, which needs no idempotency key.
func (c *call) derived(ctx context.Context, body *triggerBody) (core.BatchItem, error) {
	body.IdempotencyKey = new(string)
	return c.item(ctx, body)
}

type nodeBody struct {
	Name     string                   `json:"name" required:"true" doc:"unique in the flow"`
	Task     named[runlane.TaskID]    `json:"task" required:"true" doc:"the task of the run"`
	Payload  json.RawMessage          `json:"payload" doc:"any JSON, kept byte by byte; null unless given"`
	After    []string                 `json:"after" doc:"names of nodes that have to end before; none: at once"`
	If       runlane.Condition        `json:"if" doc:"the required ends of these: succeeded, failed, always"`
	Queue    named[runlane.QueueName] `json:"queue" doc:"a queue in place of the task's"`
	Priority int                      `json:"priority" doc:"-8 to 8 among those that wait; the highest goes first"`
	Meta     map[string]string        `json:"meta" doc:"kept with the run"`
	Foreign  bool                     `json:"foreign" doc:"take the name of the task without looking it up"`
}

type flowBody struct {
	Flow  named[runlane.FlowID] `json:"flowId" required:"true" doc:"your own id; a second start changes nothing"`
	Nodes []nodeBody            `json:"nodes" required:"true" doc:"1 to 1,000 runs"`
	Meta  map[string]string     `json:"meta" doc:"kept with each of the runs"`
}

func (c *call) flow(ctx context.Context, body *flowBody) (*runlane.Flow, error) {
	if n := len(body.Nodes); n == 0 || n > runlane.MaxFlowNodes {
		return nil, badInput("nodes has none, or too many", "send 1 to 1,000")
	}
	flow := runlane.NewFlow(body.Flow.ID)
	for i := range body.Nodes {
		n := &body.Nodes[i]
		made, err := c.derived(ctx, &triggerBody{Task: n.Task, Payload: n.Payload, Queue: n.Queue, Foreign: n.Foreign})
		if err != nil {
			return nil, err
		}
		options := &runlane.NodeOptions{If: n.If, Queue: made.Options.Queue, Priority: n.Priority, Meta: n.Meta}
		for _, name := range n.After {
			options.After = append(options.After, runlane.Node{Name: name})
		}
		flow.Add(n.Name, made.Call, options)
	}
	return flow, nil
}

type flowStartInput struct {
	Body flowBody `body:"json" required:"true"`
}

func startFlow(ctx context.Context, c *call, in *flowStartInput) (*reply, error) {
	flow, err := c.flow(ctx, &in.Body)
	if err != nil {
		return nil, err
	}
	return started(c.rt.StartFlow(ctx, flow, &runlane.FlowOptions{Actor: c.by.Actor, Meta: in.Body.Meta}))
}

type claimFlowBody struct {
	claimToken
	flowBody
}

func flowByClaim(ctx context.Context, c *call, claim *core.Claim, body *claimFlowBody) (*reply, error) {
	flow, err := c.flow(ctx, &body.flowBody)
	if err != nil {
		return nil, err
	}
	return started(claim.StartFlow(ctx, flow, &runlane.FlowOptions{Meta: body.Meta}))
}

func started(state *runlane.FlowState, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	answered := object("flow", state)
	answered.flow = string(state.ID)
	return answered, nil
}

// makingOperations are further routes of a claim. Creating runs or sending signals needs the same scope as without a
// claim.
func makingOperations() []operation {
	return []operation{
		claimRoute("snapshot", "keepSnapshot", "Record a value of an attempt as it is now",
			"Operators and later attempts see it. The first record of a name counts.",
			ok[runlane.StepRecord]("step"), keepSnapshot),
		claimRoute("block", "blockRun", "Let a run wait for an operator",
			"The attempt has ended. The run is claimed again when an operator resumes it.",
			ok[shown.Change]("change"), blockRun),
		makes(claimRoute("trigger", "triggerByClaim", "Trigger a run whose source is the claimed one",
			"The claim is judged before. Give the run an id or a key: attempts are repeated.",
			madeOrFound[shown.Triggered]("triggered"), triggerByClaim)),
		makes(claimRoute("signal", "signalByClaim", "Send a signal to another run, or to a node of a flow",
			"The claim is judged before. Give the signal an id: attempts are repeated.",
			ok[shown.Change]("change"), signalByClaim)),
		makes(claimRoute("call", "callRuns", "Make runs below the claimed one, and wait for their ends",
			"suspended means that the attempt has ended: the run is claimed again when all have ended, and finds "+
				"them in the order of the payloads. Each is made once.",
			ok[shown.CallAnswer]("called"), callRuns)),
		makes(claimRoute("flow", "flowByClaim", "Start a flow by an attempt",
			"The claim is judged before. The flow goes on when the run has ended.",
			ok[runlane.FlowState]("flow"), flowByClaim)),
	}
}

func makes(o operation) operation {
	o.also = ScopeTrigger
	o.text += " The caller needs the scope trigger, too."
	return o
}
