package demo

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
)

// meter adds up what the storages of all roles were asked for.
type meter struct {
	mu      sync.Mutex
	storage map[Role]statistician
}

type statistician interface{ Stats() dynamostore.Stats }

// add watches a role's lane. What is in one process or file has nothing to bill.
func (m *meter) add(role Role, l *lane.Lane) {
	if s, ok := lane.As[statistician](l.Storage); ok && role != observer {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.storage == nil {
			m.storage = map[Role]statistician{}
		}
		m.storage[role] = s
	}
}

// usage is by role and operation.
type usage map[Role]map[string]dynamostore.Usage

// read returns the usage until now; it is empty where nothing is billed.
func (m *meter) read() usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := usage{}
	for role, storage := range m.storage {
		u[role] = storage.Stats().Operations
	}
	return u
}

// since returns what was used after an earlier reading.
func (u usage) since(before usage) usage {
	difference := usage{}
	for role, operations := range u {
		difference[role] = map[string]dynamostore.Usage{}
		for name, now := range operations {
			if used := now.Minus(before[role][name]); used.Requests != 0 {
				difference[role][name] = used
			}
		}
	}
	return difference
}

// path is the usage of the roles that a run passes through, by operation. The tick is not among them: it asks at its
// own pace, however many runs there are.
func (u usage) path() map[string]dynamostore.Usage {
	sum := map[string]dynamostore.Usage{}
	for _, role := range []Role{Application, Relay, Bridge} {
		for name, used := range u[role] {
			sum[name] = plus(sum[name], used)
		}
	}
	return sum
}

func total(operations map[string]dynamostore.Usage) dynamostore.Usage {
	var sum dynamostore.Usage
	for _, used := range operations {
		sum = plus(sum, used)
	}
	return sum
}

func plus(a, b dynamostore.Usage) dynamostore.Usage {
	a.Requests += b.Requests
	a.WriteUnits += b.WriteUnits
	a.ReadUnits += b.ReadUnits
	return a
}

// operationNames lists the operations of both, those that write most first.
func operationNames(a, b map[string]dynamostore.Usage) []string {
	names := maps.Clone(a)
	for name, used := range b {
		names[name] = plus(names[name], used)
	}
	return slices.SortedFunc(maps.Keys(names), func(x, y string) int {
		return cmp.Or(cmp.Compare(names[y].WriteUnits, names[x].WriteUnits), cmp.Compare(x, y))
	})
}
