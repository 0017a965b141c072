package core

import (
	"context"

	"github.com/runlane/runlane-go/lane"
)

// observedStorage reports every commit to hooks and metrics. It is used only if there are any.
type observedStorage struct {
	lane.Storage

	hooks   *watchers
	metrics gauges
}

// Unwrap lets lane.As find the abilities of the storage.
func (o *observedStorage) Unwrap() lane.Storage { return o.Storage }

func (o *observedStorage) committed(ctx context.Context, c *lane.Commit) {
	if c == nil || c.Run == nil {
		return
	}
	o.metrics.committed(ctx, c.Run, c.Events)
	if dropped := o.hooks.pass(c.Run, c.Events); dropped > 0 {
		o.metrics.count(ctx, MetricChangesDropped, int64(dropped), Labels{Environment: c.Run.Environment})
	}
}

func (o *observedStorage) acquired(ctx context.Context, a *lane.Acquisition) {
	if a != nil && a.Outcome == lane.Acquired {
		o.committed(ctx, a.Commit)
	}
}

func (o *observedStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := o.Storage.AppendRunEvents(ctx, c)
	if err == nil {
		o.committed(ctx, commit)
	}
	return commit, err
}

func (o *observedStorage) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	commit, err := o.Storage.SendSignal(ctx, c)
	if err == nil {
		o.committed(ctx, commit)
	}
	return commit, err
}

func (o *observedStorage) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	commit, err := o.Storage.NotifyEnd(ctx, c)
	if err == nil {
		o.committed(ctx, commit)
	}
	return commit, err
}

func (o *observedStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := o.Storage.ClaimRunLease(ctx, c)
	if err == nil {
		o.acquired(ctx, got)
	}
	return got, err
}

func (o *observedStorage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	got, err := o.Storage.ReserveRunDispatch(ctx, c)
	if err == nil {
		o.acquired(ctx, got)
	}
	return got, err
}

func (o *observedStorage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	commit, err := o.Storage.HeartbeatRunLease(ctx, c)
	if err == nil {
		o.committed(ctx, commit)
	}
	return commit, err
}
