package dynamostore

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Usage counts requests and capacity units. A write unit is one write of up to 1 KB, twice that in a transaction, plus one for
// each index entry put or removed; a read unit is one strongly consistent read of up to 4 KB.
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

// Stats are usage figures, in total and by operation. Operations are named after the last event of a commit ("run.started")
// or after what was done ("read run", "acknowledge", "move marker").
type Stats struct {
	Usage
	Conflicts  int64            `json:"conflicts"` // transactions repeated because they met another on the same item
	Operations map[string]Usage `json:"operations"`
}

// Meter adds up what requests cost, computed from what is sent: item sizes and index changes, by the rules that AWS bills by.
// It does not ask DynamoDB, whose emulators report transactions wrongly. Safe for concurrent use; the zero value is ready.
type Meter struct {
	mutex sync.Mutex
	stats Stats
}

// Stats returns the figures so far.
func (m *Meter) Stats() Stats {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s := m.stats
	s.Operations = maps.Clone(s.Operations)
	return s
}

func (m *Meter) add(operation string, u Usage) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Usage = m.stats.plus(u)
	if m.stats.Operations == nil {
		m.stats.Operations = map[string]Usage{}
	}
	m.stats.Operations[operation] = m.stats.Operations[operation].plus(u)
}

func (m *Meter) conflict() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stats.Conflicts++
}

type meterKey struct{}

// WithMeter makes the store count what is done under this context in m too, beside its own figures.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

func (s *Store) used(ctx context.Context, operation string, u Usage) {
	s.meter.add(operation, u)
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.add(operation, u)
	}
}

// units is the number of 1 KB write units of a size.
func units(size int) int { return (size + 1023) / 1024 }

// readUnits is the number of 4 KB read units of a size, at least one.
func readUnits(size int, consistent bool) float64 {
	n := float64(max((size+4095)/4096, 1))
	if !consistent {
		n /= 2
	}
	return n
}

// itemSize is the size DynamoDB bills: names and values, without the 100 bytes that only count for storage.
func itemSize(it item) int {
	size := 0
	for name, v := range it {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberM:
		size := 3
		for name, e := range v.Value {
			size += 1 + len(name) + valueSize(e)
		}
		return size
	case *types.AttributeValueMemberL:
		size := 3
		for _, e := range v.Value {
			size += 1 + valueSize(e)
		}
		return size
	default:
		return 1
	}
}

// numberSize is one byte for two significant digits and one more, another for a sign. Zeros before the first and behind the last
// significant digit are trimmed.
func numberSize(n string) int {
	size := 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	digits := strings.Trim(strings.ReplaceAll(strings.TrimPrefix(n, "-"), ".", ""), "0")
	return size + (len(digits)+1)/2
}

// indexUnits is what the change of an item costs in both indexes: one unit for an entry put, one for an entry removed, two for
// one that moves, nothing for one that stays. (What done projects never changes once it is there.)
func indexUnits(before, after item) int {
	total := 0
	for _, index := range [][2]string{{attrDueP, attrDueA}, {attrDoneP, attrDoneA}} {
		old, isOld := entry(before, index)
		now, isNew := entry(after, index)
		if isOld && isNew && old == now {
			continue
		}
		if isOld {
			total++
		}
		if isNew {
			total++
		}
	}
	return total
}

func entry(it item, index [2]string) (key [2]string, ok bool) {
	p, ok1 := it[index[0]].(*types.AttributeValueMemberS)
	a, ok2 := it[index[1]].(*types.AttributeValueMemberS)
	if !ok1 || !ok2 {
		return key, false
	}
	return [2]string{p.Value, a.Value}, true
}

// writeUsage is one request that changes one item.
func writeUsage(before, after item) Usage {
	size := max(itemSize(before), itemSize(after))
	return Usage{Requests: 1, WriteUnits: float64(max(units(size), 1) + indexUnits(before, after))}
}
