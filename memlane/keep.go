package memlane

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// GetKeep returns where the removal of old runs stands.
func (s *Storage) GetKeep(ctx context.Context, e runlane.Environment) (*lane.KeepRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	env := s.find(e)
	if env == nil {
		return &lane.KeepRecord{}, nil
	}
	record := env.keep
	record.Passes = slices.Clone(record.Passes)
	return &record, nil
}

// PutKeep stores where it stands.
func (s *Storage) PutKeep(ctx context.Context, c *lane.PutKeepCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.open(c.Environment)
	env.keep = c.Record
	env.keep.Passes = slices.Clone(c.Record.Passes)
	return nil
}
