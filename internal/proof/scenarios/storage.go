package scenarios

import (
	"context"
	"slices"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// scriptedStorage wraps the storage under test: it records writes and lets a scenario replace a method.
type scriptedStorage struct {
	lane.Storage

	mu       sync.Mutex
	appends  []*lane.AppendCommand
	claims   []*lane.ClaimCommand
	rows     []lane.OutboxMessage
	reads    int
	onAppend func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error)
	onClaim  func(c *lane.ClaimCommand, next func() (*lane.Acquisition, error)) (*lane.Acquisition, error)
	onMark   func(next func() error) error
	onScan   func() error // before the scan for cancellations
	onBeat   func() error // before a heartbeat
	onListed func()       // after schedules were listed
	onFlow   func()       // before the record of a flow is put
	onRead   func()       // after a run was read

	oldPauses []lane.Pause // the answer of GetPauses unless it is exact; nil: the stored ones
}

// Unwrap lets lane.As find the abilities of the storage under test.
func (s *scriptedStorage) Unwrap() lane.Storage { return s.Storage }

func (s *scriptedStorage) script(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// scripts reports whether a scenario has replaced the method.
func (s *scriptedStorage) scripts(method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "AppendRunEvents":
		return s.onAppend != nil
	case "ClaimRunLease":
		return s.onClaim != nil
	case "MarkOutboxMessagesPublished":
		return s.onMark != nil
	case "ListRunsNeedingCancellationFinalization":
		return s.onScan != nil
	case "HeartbeatRunLease":
		return s.onBeat != nil
	case "ListSchedules":
		return s.onListed != nil
	case "PutFlow":
		return s.onFlow != nil
	case "GetRun":
		return s.onRead != nil
	default:
		return false
	}
}

func (s *scriptedStorage) appended() []*lane.AppendCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.appends)
}

func (s *scriptedStorage) claimed() []*lane.ClaimCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.claims)
}

// outboxIDs are the rows of all commits so far.
func (s *scriptedStorage) outboxIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for i := range s.rows {
		ids = append(ids, s.rows[i].ID)
	}
	return ids
}

func (s *scriptedStorage) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *scriptedStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	kept := *c
	s.mu.Lock()
	s.appends = append(s.appends, &kept)
	script := s.onAppend
	s.mu.Unlock()
	next := func() (*lane.Commit, error) {
		commit, err := s.Storage.AppendRunEvents(ctx, c)
		if err == nil {
			s.script(func() { s.rows = append(s.rows, commit.Outbox...) })
		}
		return commit, err
	}
	if script != nil {
		return script(c, next)
	}
	return next()
}

func (s *scriptedStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	kept := *c
	s.mu.Lock()
	s.claims = append(s.claims, &kept)
	script := s.onClaim
	s.mu.Unlock()
	next := func() (*lane.Acquisition, error) { return s.Storage.ClaimRunLease(ctx, c) }
	if script != nil {
		return script(c, next)
	}
	return next()
}

func (s *scriptedStorage) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	s.mu.Lock()
	script := s.onFlow
	s.mu.Unlock()
	if script != nil {
		script()
	}
	return s.Storage.PutFlow(ctx, c)
}

func (s *scriptedStorage) ListSchedules(
	ctx context.Context, q *lane.PageQuery,
) (*runlane.Page[runlane.ScheduleRecord], error) {
	page, err := s.Storage.ListSchedules(ctx, q)
	s.mu.Lock()
	script := s.onListed
	s.mu.Unlock()
	if script != nil {
		script()
	}
	return page, err
}

func (s *scriptedStorage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	s.mu.Lock()
	script := s.onMark
	s.mu.Unlock()
	next := func() error { return s.Storage.MarkOutboxMessagesPublished(ctx, c) }
	if script != nil {
		return script(next)
	}
	return next()
}

func (s *scriptedStorage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRun(ctx, key)
	s.mu.Lock()
	s.reads++
	script := s.onRead
	s.mu.Unlock()
	if script != nil {
		script()
	}
	return run, err
}

func (s *scriptedStorage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	s.mu.Lock()
	script := s.onBeat
	s.mu.Unlock()
	if script != nil {
		if err := script(); err != nil {
			return nil, err
		}
	}
	return s.Storage.HeartbeatRunLease(ctx, c)
}

func (s *scriptedStorage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	s.mu.Lock()
	script := s.onScan
	s.mu.Unlock()
	if script != nil {
		if err := script(); err != nil {
			return nil, err
		}
	}
	return s.Storage.ListRunsNeedingCancellationFinalization(ctx, q)
}
