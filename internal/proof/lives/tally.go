package lives

import (
	"slices"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
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

// report prints what was done.
func (t *tally) report(tb testing.TB, lane string, seed uint64) {
	tb.Helper()
	sequences, steps := t.sums()
	tb.Logf("lives lane=%s sequences=%d steps=%d seed=%d: %v", lane, sequences, steps, seed, t.counts)
}

// enough lives reach everything; with fewer, on a machine that has other things to do, something rare may be left out.
const enough = 1000

// doorFaults happen between a process and its storage.
var doorFaults = []string{string(failedCall), string(unheard), string(repeated)}

// missing fails for what no life reached: a step or a fault that never happens proves nothing.
func (t *tally) missing(tb testing.TB, faults []string) {
	tb.Helper()
	if sequences, _ := t.sums(); tb.Failed() || sequences < enough {
		return
	}
	for _, s := range allSteps {
		if !t.has("step", s.name) {
			tb.Errorf("no life had the step %q", s.name)
		}
	}
	for _, p := range []rune{
		doesStep, waitsSignal, asksPerson, waitsAtMost, waitsAny, waitsAll, sleeps, callsOne, callsMany, callsDeeper,
	} {
		if !t.has("part", string(p)) {
			tb.Errorf("in no life a program came beyond its part %q", p)
		}
	}
	for _, seen := range [][2]string{
		{"called", string(runlane.StatusFailed)},
		{"called", string(runlane.StatusSucceeded)},
		{"flow", "retried"},
		{"flow", string(runlane.FlowCancelled)},
		{"node", string(runlane.IfFailed)},
		{"node", string(runlane.Always)},
		{"signal", "kept"},
	} {
		if !t.has(seen[0], seen[1]) {
			tb.Errorf("in no life was seen: %s %s", seen[0], seen[1])
		}
	}
	if !t.has("seen", toldStep) {
		tb.Error("in no life was a handler told of a cancellation")
	}
	for _, name := range slices.Concat(faults, []string{
		string(deathBefore), string(deathAfter), string(deathInside), string(transportOut), string(transportUnheard),
		string(refused), string(rejected), string(lostWakeup), string(doubledWakeup), string(lateWakeup),
	}) {
		if !t.has("fault", name) {
			tb.Errorf("no life met the fault %q", name)
		}
	}
}
