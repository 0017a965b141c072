package dynamostore

import (
	"context"
	"maps"
	"sync"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
)

// Usage counts requests and capacity units. A write unit is one write of up to 1 KB, twice that in a transaction, plus
// one for each index entry put or removed; a read unit is one strongly consistent read of up to 4 KB.
type Usage struct {
	Requests   int64   `json:"requests"`
	WriteUnits float64 `json:"writeUnits"`
	ReadUnits  float64 `json:"readUnits"`
}

func (u Usage) plus(v Usage) Usage {
	return Usage{u.Requests + v.Requests, u.WriteUnits + v.WriteUnits, u.ReadUnits + v.ReadUnits}
}

// Minus is what was used between two readings.
func (u Usage) Minus(before Usage) Usage {
	return Usage{u.Requests - before.Requests, u.WriteUnits - before.WriteUnits, u.ReadUnits - before.ReadUnits}
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
	m.stats.Usage = m.stats.plus(u)
	if m.stats.Operations == nil {
		m.stats.Operations = map[string]Usage{}
	}
	m.stats.Operations[operation] = m.stats.Operations[operation].plus(u)
}

func (m *meter) conflict() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Conflicts++
}

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
	if of, ok := ctx.Value(meterKey{}).(*meter); ok {
		of.add(operation, Usage(u))
	}
}

// Conflict implements Meter of the table.
func (m tableMeter) Conflict() { m.store.conflict() }
