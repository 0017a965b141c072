package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// PutProgress stores the last note of a run's owner.
func (s *Storage) PutProgress(ctx context.Context, key lane.RunKey, leaseToken string, p runlane.Progress) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(key.Environment)
	e := env.run(key.RunID)
	if e != nil && e.unpacked == nil { // finished
		return embedded.LeaseLost(key.RunID)
	}
	if err := embedded.JudgeProgress(e.known(), key.RunID, leaseToken); err != nil {
		return err
	}
	p.At = runlane.UTCMillis(p.At)
	if p.At.Before(env.progress[key.RunID].At) {
		return nil
	}
	if env.progress == nil {
		env.progress = map[runlane.RunID]runlane.Progress{}
	}
	env.progress[key.RunID] = p
	return nil
}

// GetProgress returns the last note.
func (s *Storage) GetProgress(ctx context.Context, key lane.RunKey) (runlane.Progress, error) {
	if err := embedded.Ended(ctx); err != nil {
		return runlane.Progress{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(key.Environment)
	if env == nil {
		return runlane.Progress{}, nil
	}
	return env.progress[key.RunID], nil
}
