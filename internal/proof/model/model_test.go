package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

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
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f := w.explore(bound(t, cutOff))
			if f.bad != "" {
				t.Fatalf("%s\n%s", f.bad, strings.Join(f.trace, "\n"))
			}
			if f.states < 10_000 {
				t.Errorf("only %d states: this world can no longer do what it is for", f.states)
			}
			t.Logf("%d states, %d steps, depth %d, cut off: %v, settles within %d", f.states, f.steps, f.depth, f.cut, f.slowest)
		})
	}
}

// The number of states of a small world is the same each time; it changes only with a rule, and then on purpose.
func TestExplore_SmallWorld_HasAlwaysTheSameStates(t *testing.T) {
	t.Parallel()
	for range 2 {
		f := worlds()[0].explore(cutOff)
		if f.states != 37_943 || f.steps != 261_489 || f.depth != 37 || f.cut {
			t.Errorf("%d states, %d steps, depth %d, cut off: %v; expected 37943, 261489, 37, complete", f.states, f.steps, f.depth, f.cut)
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
	if len(rows) != int(ruleCount) {
		t.Errorf("docs/internals/model.md has %d rules, the model %d", len(rows), ruleCount)
	}
	for r := range ruleCount {
		name := ruleTexts[r].name
		row := rows[name]
		if row == nil {
			t.Errorf("docs/internals/model.md has no row for %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m mutation
			switch {
			case unnoticed[r] != "" || r == reserveDoubles:
				m = without(r, 0)
			default:
				m = withoutIn(r, row[0], 100_000)
			}
			if !m.caught() {
				t.Fatalf("nothing is found without %q", ruleTexts[r].says)
			}
			if m.world != "" && (m.world != row[0] || m.finding.bad != row[2]) {
				t.Errorf("%s: %s; docs/internals/model.md says %s: %s", m.world, m.finding.bad, row[0], row[2])
			}
		})
	}
}

func TestMutate_RuleThatNobodyMisses_IsReported(t *testing.T) {
	t.Parallel()
	m := without(slotByRun, 100) // too few states to see anything
	if m.caught() || !strings.Contains(m.String(), "NOT FOUND") {
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
	w := worlds()[0]
	w.removed = rules(0).with(claimMoves)
	f := w.explore(cutOff)
	if len(f.trace) != f.depth+1 && len(f.trace) != f.depth {
		t.Errorf("a way of %d lines to depth %d", len(f.trace), f.depth)
	}
	for _, l := range f.trace {
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
