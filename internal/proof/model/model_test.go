package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/model/explore"
	"github.com/runlane/runlane-go/internal/proof/race"
)

// bound is how many states of a world a test explores. The whole 10⁶ are for `make model`, which needs no race detector: there is no
// goroutine here.
func bound(t *testing.T, most int) int {
	t.Helper()
	if race.Enabled || testing.Short() {
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

// A name is all that the command line and the tables of docs/internals/model.md have.
func TestProtocols_NamesOfRulesAndWorlds_AreOfOneOnly(t *testing.T) {
	t.Parallel()
	rules, worlds := map[string]bool{}, map[string]bool{}
	for _, p := range protocols() {
		for _, r := range p.Rules {
			if r.Says == "" || rules[r.Name] {
				t.Errorf("%s: rule %q stands twice, or says nothing", p.Name, r.Name)
			}
			rules[r.Name] = true
		}
		for _, world := range p.Worlds {
			if worlds[world] {
				t.Errorf("%s: world %q stands twice", p.Name, world)
			}
			worlds[world] = true
		}
	}
}

// The number of states of a small world is the same each time; it changes only with a rule, and then on purpose.
func TestExplore_SmallWorld_HasAlwaysTheSameStates(t *testing.T) {
	t.Parallel()
	for range 2 {
		f := markers().Explore("unbounded", 0, cutOff)
		if f.States != 37_943 || f.Steps != 261_489 || f.Depth != 37 || f.Cut {
			t.Errorf("%d states, %d steps, depth %d, cut off: %v; expected 37943, 261489, 37, complete", f.States, f.Steps, f.Depth, f.Cut)
		}
	}
}

var mutationRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.+?) \\| ([\\d,]+|–) \\| (.+?) \\|$")

// The table of docs/internals/model.md: without each rule, the world that shows it and what is found there.
func TestMutations_EachRuleTakenOut_IsFoundAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/internals/model.md")
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
				t.Errorf("docs/internals/model.md has no row for %s", r.Name)
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
					t.Errorf("%s: %s; docs/internals/model.md says %s: %s", m.World, m.Finding.Bad, row[0], row[2])
				}
			})
		}
	}
	if len(rows) != all {
		t.Errorf("docs/internals/model.md has %d rules, the models %d", len(rows), all)
	}
}

func TestMutate_RuleThatNobodyMisses_IsReported(t *testing.T) {
	t.Parallel()
	p := markers()
	m := p.Mutate(p.Rules[slotByRun], 100) // too few states to see anything
	if m.Caught() || !strings.Contains(m.String(), "NOT FOUND") {
		t.Errorf("not reported: %s", m)
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

func TestTrace_ShortestWay_IsMadeOfStepsOfTheWorld(t *testing.T) {
	t.Parallel()
	f := markers().Explore("unbounded", 1<<claimMoves, cutOff)
	if len(f.Trace) != f.Depth+1 && len(f.Trace) != f.Depth {
		t.Errorf("a way of %d lines to depth %d", len(f.Trace), f.Depth)
	}
	for _, l := range f.Trace {
		if !strings.HasPrefix(l, "run 0: ") || strings.HasPrefix(l, "run 0:  ") {
			t.Errorf("no step: %q", l)
		}
	}
}

func TestRun_Arguments(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"a world, cut off":       {[]string{"-world", "bounded", "-states", "100"}, 0, "nothing found, cut off"},
		"a world without a rule": {[]string{"-world", "bounded", "-without", "outcomeFrees"}, 1, "FOUND: slot 0 leaks"},
		"no such rule":           {[]string{"-without", "gravity"}, 2, `no rule "gravity"`},
		"no such world":          {[]string{"-world", "flat"}, 1, "0 states"},
		"no such flag":           {[]string{"-x"}, 2, "flag provided but not defined"},
		"latency":                {[]string{"-latency"}, 0, "can go round for ever: true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if code := run(row.args, &out, &out); code != row.code || !strings.Contains(out.String(), row.out) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, row.code, row.out, out.String())
			}
		})
	}
}
