package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// SignalNode sends a signal to the latest run of a flow's node, see runlane.Signaler. If the flow is retried meanwhile,
// the signal goes to the new run.
func (rt *Runtime) SignalNode(
	ctx context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := rt.gate.enterLate(); err != nil {
		return err
	}
	defer rt.gate.leave()
	return rt.signalNode(ctx, node, time.Time{}, value, options)
}

// signalNode sends to a node of the flow created at created, zero for any.
func (rt *Runtime) signalNode(
	ctx context.Context,
	node runlane.Node,
	created time.Time,
	value runlane.SignalValue,
	options *runlane.SignalOptions,
) error {
	s, err := rt.newSignal("node", value, options) // its run is found below
	if err != nil {
		return err
	}
	s.answer = !created.IsZero()
	for refused := error(nil); ; {
		f, err := rt.Flows().read(ctx, node.Flow)
		if err != nil {
			return err
		}
		id, source, err := f.Node(node.Name)
		if err != nil {
			return err
		}
		if !created.IsZero() && f.CreatedAt().UnixMilli() != created.UnixMilli() {
			return &runlane.Error{
				Code:    runlane.ErrRunEnded,
				Message: fmt.Sprintf("the addressed flow %q is gone, and another flow has its id", node.Flow),
				Hint:    "a finished run never changes again",
				Cause:   runlane.ErrValidationFailed,
			}
		}
		before := s.key.RunID
		if s.key.RunID, s.source = id, &source; s.key.RunID == before {
			return refused // still the latest run
		}
		err = s.send(ctx)
		if !errors.Is(err, runlane.ErrRunEnded) && !errors.Is(err, runlane.ErrRunNotFound) {
			return err
		}
		refused = err
	}
}

// SignalNode sends a signal to a node of a flow.
func (x *execution) SignalNode(
	ctx context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	return x.rt.SignalNode(ctx, node, value, x.asWorker(options))
}
