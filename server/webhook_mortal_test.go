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

func (m *mortal) write() error {
	if n := m.writes.Add(1); m.dies > 0 && n >= m.dies {
		return errDead
	}
	return nil
}

func (m *mortal) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Storage.AppendRunEvents(ctx, c)
}

func (m *mortal) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Storage.ClaimRunLease(ctx, c)
}

func (m *mortal) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Storage.HeartbeatRunLease(ctx, c)
}

func (m *mortal) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Storage.ReleaseRunLease(ctx, c)
}

func (m *mortal) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*runlane.StepRecord, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Storage.KeepRecord(ctx, c)
}

func (m *mortal) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Storage.ClaimOutboxMessages(ctx, c)
}
