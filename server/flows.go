package server

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

type oneFlow struct {
	Flow runlane.FlowID `path:"flow" doc:"the id of the flow"`
}

type flowsInput struct {
	Status flowStatusList `query:"status" doc:"flows of these statuses, with commas between"`
	paging
}

func listFlows(ctx context.Context, c *call, in *flowsInput) (*reply, error) {
	page, err := c.rt.Flows().List(ctx, &core.FlowListOptions{
		Statuses: in.Status,
		After:    in.After,
		Limit:    in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return pageOf("flow", page.Items, page.Next, asItIs), nil
}

type flowInput struct {
	oneFlow
	Sizes bool `query:"sizes" doc:"true: with outputBytes, for callers that may see outputs"`
}

func getFlow(ctx context.Context, c *call, in *flowInput) (*reply, error) {
	state, err := c.rt.Flows().Get(ctx, in.Flow)
	if err == nil && in.Sizes && !c.hides(&c.by) {
		err = c.rt.Flows().ReadSizes(ctx, state)
	}
	if err != nil {
		return nil, err
	}
	return object("flow", state), nil
}

type flowCancelBody struct {
	reasonBody
	Everything bool `json:"everything" doc:"true: end nodes that undo, too"`
}

type flowCancelInput struct {
	oneFlow
	Body flowCancelBody `body:"json"`
}

func cancelFlow(ctx context.Context, c *call, in *flowCancelInput) (*reply, error) {
	options, err := in.Body.by(c.by)
	if err != nil {
		return nil, err
	}
	state, err := c.rt.Flows().Cancel(ctx, in.Flow, &core.CancelFlowOptions{
		ChangeOptions: options,
		Everything:    in.Body.Everything,
	})
	if err != nil {
		return nil, refused(err)
	}
	return flowChanged(shown.FlowChangeOf(state, nil)), nil
}

type flowRetryBody struct {
	reasonBody
	DryRun        bool `json:"dryRun" doc:"true: say which nodes would get new runs, and make none"`
	Number        int  `json:"number" min:"0" max:"90" doc:"the retry to make, at most once: the flow's retries plus one; 0: the next"`
	NothingUndone bool `json:"nothingUndone" doc:"true: nodes that ran because others failed undid nothing"`
}

type flowRetryInput struct {
	oneFlow
	Body flowRetryBody `body:"json"`
}

func retryFlow(ctx context.Context, c *call, in *flowRetryInput) (*reply, error) {
	by, err := in.Body.by(c.by)
	if err != nil {
		return nil, err
	}
	options := &core.RetryFlowOptions{ChangeOptions: by, Number: in.Body.Number, NothingUndone: in.Body.NothingUndone}
	renewed, err := c.rt.Flows().PlanRetry(ctx, in.Flow, options)
	if err != nil {
		return nil, refused(err)
	}
	var state *runlane.FlowState
	if in.Body.DryRun {
		state, err = c.rt.Flows().Get(ctx, in.Flow)
	} else {
		state, err = c.rt.Flows().Retry(ctx, in.Flow, options)
	}
	if err != nil {
		return nil, refused(err)
	}
	done := shown.FlowChangeOf(state, renewed)
	done.Dry = in.Body.DryRun
	return flowChanged(done), nil
}

func flowChanged(done *shown.FlowChange) *reply {
	answered := object("flow.change", done)
	answered.flow = string(done.Flow)
	return answered
}

type treeInput struct {
	oneRun
	Each int `query:"each" min:"1" max:"1000" doc:"how many runs of each call, failed and open ones first; 20 unless given"`
}

func getTree(ctx context.Context, c *call, in *treeInput) (*reply, error) {
	tree, err := c.rt.Runs().Tree(ctx, in.Run, &core.TreeOptions{Each: in.Each})
	if err != nil {
		return nil, err
	}
	return object("run.tree", shown.TreeOf(tree)), nil
}

func flowOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/flows",
			scope:   ScopeRead,
			name:    "listFlows",
			group:   "Flows",
			summary: "List flows, without their nodes",
			text: "Unfinished flows come first, by id, then the others, the latest first. A page may be short or empty " +
				"and still have next. Lists lag a little behind single flows.",
			answers: many[runlane.FlowState]("flow"),
		}, listFlows),
		serve(operation{
			method:  "POST",
			path:    "/v1/flows",
			scope:   ScopeTrigger,
			name:    "startFlow",
			group:   "Flows",
			summary: "Start a flow",
			text: "When it answers, all its runs are durable. The same flow again changes nothing, so a request whose " +
				"answer was lost can be repeated; a flow with the same id and other nodes is refused.",
			answers: ok[runlane.FlowState]("flow"),
			limit:   MaxBatchBody,
		}, startFlow),
		serve(operation{
			method:  "GET",
			path:    "/v1/flows/{flow}",
			scope:   ScopeRead,
			name:    "getFlow",
			group:   "Flows",
			summary: "Get a flow with its nodes, exactly as it is now",
			text:    "A flow is a graph of runs. The ETag is that of its nodes as they are shown.",
			answers: ok[runlane.FlowState]("flow"),
			tagged:  true,
		}, getFlow),
		serve(operation{
			method:  "POST",
			path:    "/v1/flows/{flow}/cancel",
			scope:   ScopeOperate,
			name:    "cancelFlow",
			group:   "Flows",
			summary: "Stop a flow",
			text: "Runs that have not ended are cancelled. Nodes that go on if others failed, or always, still run " +
				"and undo what had begun: open names what has not ended. everything: true ends them, too.",
			answers: ok[shown.FlowChange]("flow.change"),
		}, cancelFlow),
		serve(operation{
			method:  "POST",
			path:    "/v1/flows/{flow}/retry",
			scope:   ScopeOperate,
			name:    "retryFlow",
			group:   "Flows",
			summary: "Repeat a finished flow's nodes that did not succeed, and later ones",
			text: "Nodes that succeeded stay. renewed names the nodes that get new runs, with the payloads of the old " +
				"ones. To repeat a call whose answer was lost, give number: it makes no second retry.",
			answers: ok[shown.FlowChange]("flow.change"),
		}, retryFlow),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/tree",
			scope:   ScopeRead,
			name:    "getTree",
			group:   "Flows",
			summary: "Get a run with what it called, and what that called",
			text: "At most 1,000 runs are shown; the others are counted by status. If a call is not shown whole, failed " +
				"runs come first, then unfinished ones. Each run is as it was when it was read.",
			answers: ok[shown.Tree]("run.tree"),
			tagged:  true,
		}, getTree),
	}
}
