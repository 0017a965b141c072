package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
)

// WaitNode returns the latest run of a flow's node once it has ended, see [Runtime.Wait]. It implements
// runlane.NodeWaiter.
func (rt *Runtime) WaitNode(ctx context.Context, node runlane.Node) (*runlane.Run, error) {
	f, i, err := rt.node(ctx, node)
	if err != nil {
		return nil, err
	}
	run, err := rt.bare(ctx, f.runID(i))
	if err = f.ofNode(i, run, err); err != nil {
		return nil, err
	}
	return rt.Wait(ctx, run.ID)
}

// node finds a node.
func (rt *Runtime) node(ctx context.Context, node runlane.Node) (f *flow, i int, err error) {
	if f, err = rt.Flows().read(ctx, node.Flow); err != nil {
		return nil, 0, err
	}
	i, known := f.place[node.Name]
	if !known {
		return nil, 0, flowInvalid(node.Flow, "check the node's name", "has no node %q", node.Name)
	}
	return f, i, nil
}

// ofNode refuses a run of another origin under the id of a node's latest run.
func (f *flow) ofNode(i int, run *runlane.Run, err error) error {
	if source := f.source(i, f.plan.Nodes[i].Round); err == nil && !origin.Same(run.Source, source) {
		err = origin.Stranger(run, source)
	}
	return err
}

// WaitNode returns the latest run of a node that has ended.
func (x *execution) WaitNode(ctx context.Context, node runlane.Node) (*runlane.Run, error) {
	f, i, err := x.rt.node(ctx, node)
	if err != nil {
		return nil, err
	}
	run, err := x.rt.get(ctx, f.runID(i))
	err = f.ofNode(i, run, err)
	if err == nil && !run.Status.Terminal() {
		err = flowInvalid(node.Flow, "let the node of this run go after it", "has the node %q, which has not ended",
			node.Name)
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}
