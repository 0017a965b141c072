package server

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

type stepsInput struct {
	oneRun
	Snapshots bool `query:"snapshots" doc:"true: only snapshots, the latest first"`
}

func listSteps(ctx context.Context, c *call, in *stepsInput) (*reply, error) {
	list := c.rt.Runs().Steps
	if in.Snapshots {
		list = c.rt.Runs().Snapshots
	}
	records, err := list(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return pageOf("step", records, "", func(r *runlane.StepRecord) any {
		if c.hides(&c.by) {
			r.Result = nil
		}
		return r
	}), nil
}

func listReceipts(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	receipts, err := c.rt.Runs().Receipts(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return pageOf("receipt", receipts, "", func(r *runlane.Receipt) any {
		if c.hides(&c.by) {
			r.Headers, r.Body, r.Stdout, r.Stderr = nil, "", "", ""
		}
		return r
	}), nil
}

type signalBody struct {
	Name string          `json:"name" required:"true" doc:"the name that the run waits for"`
	ID   string          `json:"id" doc:"a second request with it and the same body changes nothing"`
	Body json.RawMessage `json:"body" doc:"any JSON, kept byte by byte; null unless given"`
}

type signalInput struct {
	oneRun
	Body signalBody `body:"json" required:"true"`
}

func signalRun(ctx context.Context, c *call, in *signalInput) (*reply, error) {
	value := runlane.NewRawSignal(in.Body.Name, orNull(in.Body.Body))
	options := &runlane.SignalOptions{Actor: c.by.Actor, ID: in.Body.ID, Receipt: &runlane.SignalReceipt{}}
	if err := c.rt.Signal(ctx, in.Run, value, options); err != nil {
		return nil, err
	}
	return c.changed(ctx, in.Run, options.Receipt)
}

type nodeSignalBody struct {
	Node string `json:"node" required:"true" doc:"the name of the node; its latest run gets the signal"`
	signalBody
}

type nodeSignalInput struct {
	oneFlow
	Body nodeSignalBody `body:"json" required:"true"`
}

func signalNode(ctx context.Context, c *call, in *nodeSignalInput) (*reply, error) {
	node := runlane.Node{Flow: in.Flow, Name: in.Body.Node}
	value := runlane.NewRawSignal(in.Body.Name, orNull(in.Body.Body))
	options := &runlane.SignalOptions{Actor: c.by.Actor, ID: in.Body.ID, Receipt: &runlane.SignalReceipt{}}
	if err := c.rt.SignalNode(ctx, node, value, options); err != nil {
		return nil, err
	}
	return c.changedNode(ctx, node, options.Receipt)
}

func (c *call) changedNode(
	ctx context.Context, node runlane.Node, receipt *runlane.SignalReceipt,
) (*reply, error) {
	state, err := c.rt.Flows().Get(ctx, node.Flow)
	if err != nil {
		return nil, err
	}
	found, _ := state.Node(node.Name)
	return c.changed(ctx, found.RunID, receipt)
}

// changed answers a signal with the state of its run, and whether the signal existed before.
func (c *call) changed(
	ctx context.Context, id runlane.RunID, receipt *runlane.SignalReceipt,
) (*reply, error) {
	run, err := c.rt.Runs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	answered := object("change", &shown.Change{Run: id, Now: run.Status, Existing: receipt.Existing})
	answered.run, answered.sequence = string(id), run.EventSequence
	return answered, nil
}

type answerBody struct {
	Token string          `json:"token" required:"true" doc:"the token of a link"`
	Body  json.RawMessage `json:"body" doc:"any JSON, kept byte by byte; null unless given"`
}

type answerInput struct {
	Body answerBody `body:"json" required:"true"`
}

func answerRun(ctx context.Context, c *call, in *answerInput) (*reply, error) {
	if in.Body.Token == "" {
		return nil, badInput("token is missing", "send the token of the link")
	}
	asked, err := c.rt.ReadToken(in.Body.Token)
	if err != nil {
		return nil, err
	}
	value := runlane.NewRawSignal(asked.Signal, orNull(in.Body.Body))
	options := &runlane.SignalOptions{Actor: c.by.Actor, Receipt: &runlane.SignalReceipt{}}
	if err := c.rt.Answer(ctx, in.Body.Token, value, options); err != nil {
		return nil, err
	}
	if asked.Node.Flow != "" {
		return c.changedNode(ctx, asked.Node, options.Receipt)
	}
	return c.changed(ctx, asked.RunID, options.Receipt)
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

func waitOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/steps",
			scope:   ScopeRead,
			name:    "listSteps",
			group:   "Runs that wait",
			summary: "List what a run remembers",
			text: "Steps, sleeps, answers of waits, checkpoints and snapshots, in the order of recording. Attempts " +
				"that come find them again.",
			answers: many[runlane.StepRecord]("step"),
		}, listSteps),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/receipts",
			scope:   ScopeRead,
			name:    "listReceipts",
			group:   "Runs",
			summary: "List how the requests and commands of a run ended",
			text: "One for each attempt that kept one: status and some headers of a response, or exit code and ends of the " +
				"output of a command.",
			answers: many[runlane.Receipt]("receipt"),
		}, listReceipts),
		serve(operation{
			method:  "POST",
			path:    "/v1/runs/{run}/signals",
			scope:   ScopeTrigger,
			name:    "signalRun",
			group:   "Runs that wait",
			summary: "Send a signal to a run",
			text: "When it answers, the signal is durable: a run that waits for it goes on, one that does not " +
				"wait yet finds it later. Without an id, a request whose answer was lost sends a second signal " +
				"when it is repeated.",
			answers: ok[shown.Change]("change"),
			limit:   MaxTriggerBody,
		}, signalRun),
		serve(operation{
			method:  "POST",
			path:    "/v1/flows/{flow}/signals",
			scope:   ScopeTrigger,
			name:    "signalNode",
			group:   "Runs that wait",
			summary: "Send a signal to a node of a flow",
			text: "It goes to the latest run of the node, also after the flow was retried; otherwise as a signal to " +
				"a run.",
			answers: ok[shown.Change]("change"),
			limit:   MaxTriggerBody,
		}, signalNode),
		serve(operation{
			method:  "POST",
			path:    "/v1/answers",
			scope:   ScopeTrigger,
			name:    "answerRun",
			group:   "Runs that wait",
			summary: "Answer the question of a run with the token of a link",
			text: "The token names the run, or the node of a flow, and the signal. It answers once: the same answer " +
				"again is a success, another one a conflict.",
			answers: ok[shown.Change]("change"),
			limit:   MaxTriggerBody,
		}, answerRun),
	}
}
