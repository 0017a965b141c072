package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/spec/explore"
)

// bound is how many states of a world a test explores.
func bound(t *testing.T, most int) int {
	t.Helper()
	if testing.Short() {
		return min(most, 20_000)
	}
	return most
}

func TestWorlds_AllRulesInForce_NothingIsFound(t *testing.T) {
	t.Parallel()
	for _, p := range protocols() {
		for _, world := range p.Worlds {
			t.Run(world, func(t *testing.T) {
				t.Parallel()
				f := p.Explore(world, 0, bound(t, p.Most))
				if f.Bad != "" {
					t.Fatalf("%s\n%s", f.Bad, strings.Join(f.Trace, "\n"))
				}
				if f.States < 10_000 {
					t.Errorf("only %d states: this world can no longer do what it is for", f.States)
				}
				t.Logf("%d states, %d steps, depth %d, cut off: %v, settles within %d", f.States, f.Steps, f.Depth, f.Cut, f.Slowest)
			})
		}
	}
}

var mutationRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.+?) \\| ([\\d,]+|–) \\| (.+?) \\|$")

// testdata/rules.txt: without each rule, the world that shows it and what is found there.
func TestMutations_EachRuleTakenOut_IsFoundAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, row := range mutationRow.FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2:]
	}
	all := 0
	for _, p := range protocols() {
		all += len(p.Rules)
		for _, r := range p.Rules {
			row := rows[r.Name]
			if row == nil {
				t.Errorf("testdata/rules.txt has no row for %s", r.Name)
				continue
			}
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				var m explore.Mutation
				if r.Unnoticed != "" || r.Alone != nil {
					m = p.Mutate(r, cutOff)
				} else {
					m = p.MutateIn(r, row[0], 200_000)
				}
				if !m.Caught() {
					t.Fatalf("nothing is found without %q", r.Says)
				}
				if m.World != "" && (m.World != row[0] || m.Finding.Bad != row[2]) {
					t.Errorf("%s: %s; testdata/rules.txt says %s: %s", m.World, m.Finding.Bad, row[0], row[2])
				}
			})
		}
	}
	if len(rows) != all {
		t.Errorf("testdata/rules.txt has %d rules, the models %d", len(rows), all)
	}
}

func TestReservations_Doubling_AlwaysEnds(t *testing.T) {
	t.Parallel()
	for _, w := range reservations(true) {
		if states, ends, forEver := w.circle(cutOff); !ends || forEver || states == cutOff {
			t.Errorf("%d runs, limit %d, latency %d: ends %v, for ever %v, %d states", w.runs, w.limits[0], w.latency, ends, forEver, states)
		}
	}
}

func TestReservations_WakeupsAsSlowAsReservations_GoRoundWithoutDoubling(t *testing.T) {
	t.Parallel()
	for _, w := range reservations(false) {
		_, ends, forEver := w.circle(cutOff)
		if want := w.latency >= w.reservation; !ends || forEver != want {
			t.Errorf("%d runs, limit %d, latency %d: ends %v, for ever %v, expected %v", w.runs, w.limits[0], w.latency, ends, forEver, want)
		}
	}
}
