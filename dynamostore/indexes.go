package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go/lane"
)

// Indexes returns the states of all indexes for doctor, by one DescribeTable: also the ones of a newer version, created
// before it is deployed, and of an older one, deleted last.
func (s *Store) Indexes(ctx context.Context) ([]lane.IndexState, error) {
	states, err := s.db.States(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]lane.IndexState, len(states))
	for i, state := range states {
		all[i] = lane.IndexState(state)
	}
	return all, nil
}
