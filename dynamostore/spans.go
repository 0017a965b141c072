package dynamostore

import (
	"sync"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// spans remembers the first marker of each span that the latest round read, so that its other scans need not read what
// is not due. A partition in which this process wrote a marker meanwhile is read again.
type spans struct {
	mu      sync.Mutex
	round   *lane.Round
	firsts  map[ddb.Partition]string
	changed map[string]bool // partitions
}

func (s *spans) wrote(due rows.DueKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round != nil && due.Partition != "" {
		s.changed[due.Partition] = true
	}
}

// begin forgets an earlier round. The caller holds the lock.
func (s *spans) begin(round *lane.Round) {
	if s.round != round {
		s.round, s.firsts, s.changed = round, map[ddb.Partition]string{}, map[string]bool{}
	}
}

// roundSpans are the spans of one round.
type roundSpans struct {
	*spans
	of *lane.Round
}

// First implements ddb.Firsts.
func (r *roundSpans) First(span ddb.Partition) (first string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(r.of)
	first, known = r.firsts[span]
	return first, known && !r.changed[span.Name]
}

// Note implements ddb.Firsts.
func (r *roundSpans) Note(span ddb.Partition, first string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(r.of)
	r.firsts[span] = first
}
