package lives

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

// tally counts what happened in lives, by kind and name. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[string]map[string]int
}

func newTally() *tally { return &tally{counts: map[string]map[string]int{}} }

func (t *tally) add(kind, name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n <= 0 {
		return
	}
	if t.counts[kind] == nil {
		t.counts[kind] = map[string]int{}
	}
	t.counts[kind][name] += n
}

func (t *tally) fault(name string) { t.add("fault", name, 1) }

func (t *tally) merge(other *tally) {
	for kind, names := range other.counts {
		for name, n := range names {
			t.add(kind, name, n)
		}
	}
}

// has reports that something was counted.
func (t *tally) has(kind, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[kind][name] > 0
}

func (t *tally) sums() (sequences, steps int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.counts["step"] {
		steps += n
	}
	return t.counts["sequence"]["all"], steps
}

// print writes every count.
func (t *tally) print(tb testing.TB, lane string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(t.counts)) {
		if kind == "sequence" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.counts[kind])) {
			tb.Logf("reliability: lives lane=%s %s %s=%d", lane, kind, name, t.counts[kind][name])
		}
	}
}
