package server_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// mortal is the storage as one process reaches it, until it dies.
type mortal struct {
	lane.Storage

	writes atomic.Int64
	dies   int64 // at this write; 0: never
}

var errDead = errors.New("the process is dead")

func (m *mortal) Unwrap() lane.Storage { return m.Storage }

// alive sends a write, unless the process is dead.
func alive[C, T any](ctx context.Context, m *mortal, command C, send func(context.Context, C) (T, error)) (got T, err error) {
	if n := m.writes.Add(1); m.dies > 0 && n >= m.dies {
		return got, errDead
	}
	return send(ctx, command)
}

func (m *mortal) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return alive(ctx, m, c, m.Storage.AppendRunEvents)
}

func (m *mortal) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return alive(ctx, m, c, m.Storage.ClaimRunLease)
}

func (m *mortal) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return alive(ctx, m, c, m.Storage.HeartbeatRunLease)
}

func (m *mortal) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	_, err := alive(ctx, m, c, func(ctx context.Context, c *lane.ReleaseCommand) (any, error) {
		return nil, m.Storage.ReleaseRunLease(ctx, c)
	})
	return err
}

func (m *mortal) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*runlane.StepRecord, error) {
	return alive(ctx, m, c, m.Storage.KeepRecord)
}

func (m *mortal) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	return alive(ctx, m, c, m.Storage.ClaimOutboxMessages)
}
