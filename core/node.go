package core

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/flow"
	"github.com/runlane/runlane-go/core/internal/origin"
)

// WaitNode returns the latest run of a flow's node once it has ended, see [Runtime.Wait]. It implements
// runlane.NodeWaiter.
func (rt *Runtime) WaitNode(ctx context.Context, node runlane.Node) (*runlane.Run, error) {
	f, err := rt.Flows().read(ctx, node.Flow)
	if err != nil {
		return nil, err
	}
	id, source, err := f.Node(node.Name)
	if err != nil {
		return nil, err
	}
	run, err := rt.bare(ctx, id)
	if err = checkOrigin(run, source, err); err != nil {
		return nil, err
	}
	return rt.Wait(ctx, run.ID)
}

// checkOrigin refuses a run that has the id of a node's latest run but another origin.
func checkOrigin(run *runlane.Run, source runlane.Source, err error) error {
	if err == nil && !origin.Same(run.Source, source) {
		err = origin.Stranger(run, source)
	}
	return err
}

// WaitNode returns the latest run of a node that has ended.
func (x *execution) WaitNode(ctx context.Context, node runlane.Node) (*runlane.Run, error) {
	f, err := x.rt.Flows().read(ctx, node.Flow)
	if err != nil {
		return nil, err
	}
	id, source, err := f.Node(node.Name)
	if err != nil {
		return nil, err
	}
	run, err := x.rt.get(ctx, id)
	err = checkOrigin(run, source, err)
	if err == nil && !run.Status.Terminal() {
		err = flow.Invalid(node.Flow, "let the node of this run go after it", "has the node %q, which has not ended",
			node.Name)
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}
