package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go/lane"
)

// Indexes says in what state they are, for doctor, by one DescribeTable. It has indexes that this version does not
// know, too: a newer one's that are made before it is deployed, and an older one's that are deleted last.
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
