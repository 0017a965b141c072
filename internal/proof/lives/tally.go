package lives

import (
	"fmt"
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

// absent are the names that were never counted, by kind: a step, a fault or an answer that never happens proves nothing.
func (t *tally) absent(want map[string][]string) (names []string) {
	for kind, all := range want {
		for _, name := range all {
			if !t.has(kind, name) {
				names = append(names, fmt.Sprintf("%s %q", kind, name))
			}
		}
	}
	return names
}

func namesOf[L any](steps []step[L]) (names []string) {
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// missing fails for what no life without an oracle reached.
func (t *tally) missing(tb testing.TB, faults []string) {
	tb.Helper()
	if sequences, _ := t.sums(); tb.Failed() || sequences < enough {
		return
	}
	want := map[string][]string{
		"step":   namesOf(allSteps),
		"called": {string(runlane.StatusFailed), string(runlane.StatusSucceeded)},
		"flow":   {"retried", string(runlane.FlowCancelled)},
		"node":   {string(runlane.IfFailed), string(runlane.Always)},
		"signal": {"kept"},
		"seen":   {toldStep},
		"fault": slices.Concat(faults, []string{
			string(deathBefore), string(deathAfter), string(deathInside), string(transportOut), string(transportUnheard),
			string(refused), string(rejected), string(lostWakeup), string(doubledWakeup), string(lateWakeup),
		}),
	}
	for _, part := range []rune{
		doesStep, waitsSignal, asksPerson, waitsAtMost, waitsAny, waitsAll, sleeps, callsOne, callsMany, callsDeeper,
	} {
		want["part"] = append(want["part"], string(part))
	}
	for _, what := range t.absent(want) {
		tb.Errorf("no life reached %s", what)
	}
}
