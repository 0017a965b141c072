package hostiletest_test

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// starting is a refusal of a flow with one node.
func starting(what string, o runlane.NodeOptions) refusal {
	return failed(what, func(w *world) []error {
		f := runlane.NewFlow("flow")
		f.Add("node", w.task.With(payload{}), &o)
		_, err := w.rt.StartFlow(w.ctx(), f, nil)
		return []error{err}
	})
}

// listingFlows is a refusal of a list of flows.
func listingFlows(what string, o core.FlowListOptions) refusal {
	return failed(what, func(w *world) []error {
		_, err := w.rt.Flows().List(w.ctx(), &o)
		return []error{err}
	})
}

// cancellingFlow is a refusal to cancel a flow.
func cancellingFlow(what string, o core.ChangeOptions) refusal {
	return failed(what, func(w *world) []error {
		_, err := w.rt.Flows().Cancel(w.ctx(), "flow", &core.CancelFlowOptions{ChangeOptions: o})
		return []error{err}
	})
}

// retryingFlow is a refusal to retry a flow.
func retryingFlow(what string, o core.RetryFlowOptions) refusal {
	return failed(what, func(w *world) []error {
		_, err := w.rt.Flows().Retry(w.ctx(), "flow", &o)
		return []error{err}
	})
}

func flowRules() map[string]rule {
	return map[string]rule{
		"runlane.NodeOptions.After": refuses(
			starting("unknown", runlane.NodeOptions{After: []runlane.Node{{Name: "none"}}}).as("after"),
			starting("itself", runlane.NodeOptions{After: []runlane.Node{{Name: "node"}}}).as(`a cycle: "node" after "node"`),
			starting("another flow's", runlane.NodeOptions{After: []runlane.Node{{Flow: "other", Name: "node"}}}).as("after"),
		),
		"runlane.NodeOptions.If":       refuses(starting("unknown", runlane.NodeOptions{If: "odd"}).as("condition")),
		"runlane.NodeOptions.Queue":    legal("refused by the trigger of each run, as TriggerOptions.Queue is"),
		"runlane.NodeOptions.Priority": refuses(starting("above all", runlane.NodeOptions{Priority: runlane.MaxPriority + 1})),
		"runlane.NodeOptions.Meta":     legal("refused by the trigger of each run, as TriggerOptions.Meta is"),
		"runlane.FlowOptions.Actor":    legal("refused by the trigger of each run, as TriggerOptions.Actor is"),
		"runlane.FlowOptions.Meta":     legal("refused by the trigger of each run, as TriggerOptions.Meta is"),
		"core.CancelFlowOptions.Actor": refuses(
			cancellingFlow("an unknown type", core.ChangeOptions{Actor: runlane.Actor{Type: "robot"}}),
		),
		"core.CancelFlowOptions.Reason":     refuses(cancellingFlow("no text", core.ChangeOptions{Reason: notUTF8})),
		"core.CancelFlowOptions.Everything": legal("either is meant"),
		"core.RetryFlowOptions.Actor": refuses(retryingFlow("an unknown type", core.RetryFlowOptions{
			ChangeOptions: core.ChangeOptions{Actor: runlane.Actor{Type: "robot"}},
		})),
		"core.RetryFlowOptions.Reason": refuses(retryingFlow("no text", core.RetryFlowOptions{
			ChangeOptions: core.ChangeOptions{Reason: notUTF8},
		})),
		"core.RetryFlowOptions.Number": refuses(
			retryingFlow("negative", core.RetryFlowOptions{Number: -1}),
			retryingFlow("too many", core.RetryFlowOptions{Number: runlane.MaxFlowRetries + 1}),
		),
		"core.RetryFlowOptions.NothingUndone": legal("either is meant"),
		"core.FlowListOptions.Statuses": refuses(
			listingFlows("unknown", core.FlowListOptions{Statuses: []runlane.FlowStatus{"odd"}}),
		),
		"core.FlowListOptions.After": refuses(listingFlows("foreign", core.FlowListOptions{After: "odd"})),
		"core.FlowListOptions.Limit": refuses(
			listingFlows("negative", core.FlowListOptions{Limit: -1}),
			listingFlows("too many", core.FlowListOptions{Limit: runlane.MaxPageLimit + 1}),
		),
	}
}
