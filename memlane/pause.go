package memlane

import (
	"context"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// GetPauses implements [lane.Storage]. It is always exact.
func (s *Storage) GetPauses(ctx context.Context, q lane.PausesQuery) (lane.Pauses, error) {
	if err := embedded.Ended(ctx); err != nil {
		return lane.Pauses{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	env := s.find(q.Environment)
	if env == nil {
		return lane.Pauses{}, nil
	}
	return env.pauses.AtRest(), nil // a copy
}

// PutPauses implements [lane.Storage].
func (s *Storage) PutPauses(ctx context.Context, c *lane.PutPausesCommand) (int64, error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	if err := c.Validate(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.open(c.Environment)
	if env.pauses.Version != c.Pauses.Version {
		return 0, lane.PausesChanged(env.pauses.Version, c)
	}
	env.pauses = c.Pauses.AtRest()
	env.pauses.Version++
	return env.pauses.Version, nil
}
