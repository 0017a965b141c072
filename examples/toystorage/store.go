// Package toystorage is the worked example of docs/internals/adapters.md: a storage in a map, honest about the little
// that it can do. It proves that the contract and the conformance suite are enough to write an adapter; use memlane to
// run anything in a process.
package toystorage

import (
	"context"
	"fmt"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storage keeps runs and their histories in a map, and no keys, leases or outbox.
type Storage struct {
	lane.UnimplementedStorage

	mu   sync.Mutex
	runs map[lane.RunKey]record
}

// record is a run and how it came about.
type record struct {
	run    *runlane.Run
	events []runlane.EventRecord
}

// New makes an empty storage.
func New() *Storage { return &Storage{runs: map[lane.RunKey]record{}} }

// Capabilities promises what the methods below keep, and nothing else.
func (s *Storage) Capabilities() lane.StorageCapabilities {
	return lane.StorageCapabilities{ProcessLocalState: true, ReadsRunHistory: true}
}

// AppendRunEvents commits events and projection together.
func (s *Storage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if c.Projected == nil { // it names no run, so there is no sequence to compare
		return nil, c.Validate()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyAtRest(c.Key())
	stored, exists := s.runs[key]
	if err := judge(stored, exists, c); err != nil {
		return nil, err
	}

	written := record{run: lane.RunAtRest(c.Projected), events: stored.events}
	if exists {
		written.run.Payload = stored.run.Payload // the caller may have read the run without it
	}
	commit := &lane.Commit{Run: written.run.Clone()}
	for i, event := range c.Events {
		sequence := c.ExpectedSequence + int64(i) + 1
		r := runlane.EventRecord{
			ID:       fmt.Sprintf("%s/%d", key.RunID, sequence),
			Sequence: sequence,
			Event:    lane.EventAtRest(event),
		}
		written.events = append(written.events, r)
		commit.Events = append(commit.Events, r.Clone())
	}
	s.runs[key] = written
	return commit, nil
}

// judge keeps the order of the contract: sequence, lease token, everything else.
func judge(stored record, exists bool, c *lane.AppendCommand) error {
	var sequence int64
	var token string
	if exists {
		sequence, token = stored.run.EventSequence, stored.run.Lease.Token
	}
	if c.ExpectedSequence != sequence {
		return conflict(runlane.ConflictEventSequence, c.Projected.ID, "the run has moved on")
	}
	if c.LeaseToken != "" && c.LeaseToken != token {
		return conflict(runlane.ConflictLeaseOwnership, c.Projected.ID, "the lease no longer belongs to this worker")
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Queue.Bounded() || c.Reserves() || c.Projected.IdempotencyKey != "" || c.Projected.SingletonKey != "" {
		return &runlane.Error{
			Code:    runlane.ErrCapabilityUnsupported,
			RunID:   c.Projected.ID,
			Message: "this storage enforces neither limits nor keys",
			Hint:    "use a lane whose storage does",
		}
	}
	return nil
}

// GetRun returns the run as it is now.
func (s *Storage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, exists := s.runs[keyAtRest(key)]
	if !exists {
		return nil, &runlane.Error{
			Code:    runlane.ErrRunNotFound,
			RunID:   key.RunID,
			Message: "no such run",
			Hint:    "check id and environment",
		}
	}
	return stored.run.Clone(), nil
}

// GetRuns keeps order and repeats and leaves out what is missing.
func (s *Storage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	var runs []*runlane.Run
	for _, id := range q.IDs {
		run, err := s.GetRun(ctx, lane.RunKey{Environment: q.Environment, RunID: id})
		if runlane.CodeOf(err) == runlane.ErrRunNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if q.WithoutPayload {
			run.Payload, run.Output = nil, nil
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// InspectRun returns the run alone: there is no outbox to show a delivery of, and no slot to hold.
func (s *Storage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	run, err := s.GetRun(ctx, q.RunKey)
	if err != nil {
		return nil, err
	}
	return &lane.Inspection{Run: run}, nil
}

// keyAtRest spells the environment out: its empty name is the default one.
func keyAtRest(key lane.RunKey) lane.RunKey {
	key.Environment = runlane.Environment(key.Environment.Name())
	return key
}

func conflict(kind runlane.ConflictKind, id runlane.RunID, message string) error {
	err := runlane.NewConflict(kind, message)
	err.RunID = id
	return err
}

// ended refuses a call whose context has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the context had ended before the call",
		Retryable: true,
		Cause:     context.Cause(ctx),
	}
}
