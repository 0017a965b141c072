package dynamostore

import (
	"context"
	"maps"
	"sync"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/lane"
)

// Usage counts requests and capacity units, see [lane.Usage].
type Usage = lane.Usage

func plus(u, v Usage) Usage {
	return Usage{
		Requests:   u.Requests + v.Requests,
		WriteUnits: u.WriteUnits + v.WriteUnits,
		ReadUnits:  u.ReadUnits + v.ReadUnits,
	}
}

// Stats are usage figures, in total and by operation. Operations are named after the last event of a commit
// ("run.started") or after what was done ("read run", "acknowledge", "move marker").
type Stats struct {
	Usage
	Conflicts  int64            `json:"conflicts"` // transactions repeated because they met another on the same item
	Operations map[string]Usage `json:"operations"`
}

// meter adds up what requests cost, computed from what is sent: item sizes and index changes, by the rules that AWS
// bills by. It does not ask DynamoDB, whose emulators report transactions wrongly. Safe for concurrent use; the zero
// value is ready.
type meter struct {
	mutex sync.Mutex
	stats Stats
}

// Stats returns the figures so far.
func (m *meter) Stats() Stats {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s := m.stats
	s.Operations = maps.Clone(s.Operations)
	return s
}

func (m *meter) add(operation string, u Usage) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Usage = plus(m.stats.Usage, u)
	if m.stats.Operations == nil {
		m.stats.Operations = map[string]Usage{}
	}
	m.stats.Operations[operation] = plus(m.stats.Operations[operation], u)
}

func (m *meter) conflict() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Conflicts++
}

// Usage has the figures of [Store.Stats] by operation.
func (s *Store) Usage() map[string]Usage { return s.Stats().Operations }

type meterKey struct{}

// withMeter makes the store count what is done under this context in m too, besides its own figures: it is how tests
// and benchmarks see the cost of one call.
func withMeter(ctx context.Context, m *meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// tableMeter makes the requests of the store's table count.
type tableMeter struct{ store *meter }

// Used implements Meter of the table.
func (m tableMeter) Used(ctx context.Context, operation string, u ddb.Usage) {
	m.store.add(operation, Usage(u))
	lane.AddUsage(ctx, Usage(u))
	if of, ok := ctx.Value(meterKey{}).(*meter); ok {
		of.add(operation, Usage(u))
	}
}

// Conflict implements Meter of the table.
func (m tableMeter) Conflict() { m.store.conflict() }
