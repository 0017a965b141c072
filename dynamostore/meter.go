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

func addUsage(u, v Usage) Usage {
	return Usage{
		Requests:   u.Requests + v.Requests,
		WriteUnits: u.WriteUnits + v.WriteUnits,
		ReadUnits:  u.ReadUnits + v.ReadUnits,
	}
}

// Stats are usage figures in total and by operation: the last event of a commit ("run.started") or the action ("read
// run").
type Stats struct {
	Usage
	Conflicts  int64            `json:"conflicts"` // transactions repeated because another one changed the same item
	Operations map[string]Usage `json:"operations"`
}

// meter adds up the cost of requests by the rules of AWS's bill, from item sizes and index changes: emulators of
// DynamoDB report transactions wrongly. Safe for concurrent use; the zero value is ready.
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
	m.stats.Usage = addUsage(m.stats.Usage, u)
	if m.stats.Operations == nil {
		m.stats.Operations = map[string]Usage{}
	}
	m.stats.Operations[operation] = addUsage(m.stats.Operations[operation], u)
}

func (m *meter) conflict() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Conflicts++
}

// Usage returns the figures of [Store.Stats] by operation.
func (s *Store) Usage() map[string]Usage { return s.Stats().Operations }

type meterKey struct{}

// withMeter makes requests under the context count in m too. Tests and benchmarks measure single calls with it.
func withMeter(ctx context.Context, m *meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

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
