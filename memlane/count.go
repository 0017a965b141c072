package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// CountRuns implements lane.Storage from the sizes of the lists.
func (s *Storage) CountRuns(ctx context.Context, q *lane.CountQuery) (*lane.RunCounts, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	counts := &lane.RunCounts{}
	s.mu.Lock()
	defer s.mu.Unlock()
	env := s.find(q.Environment)
	if env == nil {
		return counts, nil
	}
	for _, set := range env.lists(&choice{of: active, queue: q.Queue}) {
		status := set.kind.is()
		if status.Owned() {
			counts.Owned += set.size
			continue
		}
		until := embedded.CountUntil(q, status == runlane.StatusQueued)
		block, index := set.seek(position{at: until + 1})
		due := index
		for _, items := range set.blocks[:block] {
			due += len(items)
		}
		if due > 0 {
			first := set.blocks[0][0]
			counts.Saw(true, due, first.at.Time(), first.entry.id)
		}
		if due < set.size {
			next := set.blocks[block][index]
			counts.Saw(false, set.size-due, next.at.Time(), next.entry.id)
		}
	}
	for key, p := range env.partitions {
		if key.queue != q.Queue {
			continue
		}
		for _, e := range p.holders {
			if !e.owned() && e.occupies(embedded.At(q.At)) {
				counts.Reserved++
			}
		}
	}
	return counts, nil
}
