package flow

import (
	"context"
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Cancel closes a flow and cancels its unended runs; with everything also nodes that run by a condition on failures.
func (all *Flows) Cancel(ctx context.Context, f *Flow, by By, everything bool) (*runlane.FlowState, error) {
	id, closed := f.record.ID, 1
	if everything {
		closed = 2
	}
	open := false
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		open = true
		if record.Closed >= closed {
			return false // already cancelled, perhaps by this call before a lost answer
		}
		record.Closed, record.TendAt = closed, all.Host.Now()
		return true
	})
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, Invalid(id, "a flow that has finished is retried, or started under another id",
			"has finished, or was retried meanwhile: there is nothing to cancel")
	}
	if by.Reason == "" {
		by.Reason = reasonFlowClosed
	}
	if err := f.sweep(ctx, by); err != nil {
		return nil, err
	}
	state, err := all.state(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := f.swept(ctx); err != nil {
		all.Logger.LogAttrs(ctx, slog.LevelWarn, "a tick looks again at the nodes of a cancelled flow",
			slog.String("flow", string(id)), slog.Any("error", err))
	}
	return state, nil
}
