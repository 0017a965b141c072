package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// Ending is the outcome of one run that was triggered.
type Ending struct {
	ID runlane.RunID
	// Poison never lets its worker end.
	Poison bool
	// Far is due long after everything else.
	Far bool
	// Missing is not in the storage.
	Missing bool
	Status  runlane.Status
	Failure runlane.ErrorCode
	// Attempts that started, and those of them that ended without an outcome.
	Attempts, Abandoned int
	// Wait is what a run that has not ended waits for; "" when it is unknown.
	Wait core.Wait
}

// Account says of every run that was triggered where it is. Triggered is always Finished + Waiting + Lost.
type Account struct {
	Triggered, Finished, Waiting, Lost int
	// Effects are the lines of the ledger, Excess those of them beyond the first of a run.
	Effects, Excess int
	// Endings counts finished runs by status, and failed ones by code; Waits counts those that wait.
	Endings map[string]int
	Waits   map[core.Wait]int
	// Problems are sentences about what must not be. None is how it has to be.
	Problems []string
}

// NewAccount judges the endings of runs by what was recorded of their effects:
//
//   - a run that is gone, or waits for nothing that has a name, is lost, and so is one that succeeded without its
//     effect,
//   - a run fails only with lease_expired, after exactly as many abandoned attempts as runs are allowed; poison never
//     succeeds,
//   - an attempt has at most one effect, and effects only come from attempts that history knows of,
//   - with faults off, nothing is left to wait for but a time that is far away.
func NewAccount(endings []Ending, effects []lambdatest.Entry) *Account {
	a := &Account{Triggered: len(endings), Effects: len(effects), Endings: map[string]int{}, Waits: map[core.Wait]int{}}
	byRun := map[runlane.RunID][]int{} // the attempts that had effects
	for _, e := range effects {
		id := runlane.RunID(e.Name)
		if slices.Contains(byRun[id], e.Attempt) {
			a.problem(id, "attempt %d had its effect twice", e.Attempt)
		}
		byRun[id] = append(byRun[id], e.Attempt)
	}
	seen := map[runlane.RunID]bool{}
	for i := range endings {
		e := &endings[i]
		if seen[e.ID] {
			a.problem(e.ID, "was counted twice")
		}
		seen[e.ID] = true
		attempts := byRun[e.ID]
		a.Excess += max(0, len(attempts)-1)
		switch {
		case e.Missing:
			a.lost(e.ID, "is gone")
		case e.Status.Terminal():
			a.finished(e, len(attempts))
		default:
			a.waiting(e)
		}
		if most := slices.Max(append(attempts, 0)); !e.Missing && most > e.Attempts {
			a.problem(e.ID, "attempt %d had an effect, and its history has %d", most, e.Attempts)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byRun)) {
		if !seen[id] {
			a.problem(id, "had an effect, and was never triggered")
		}
	}
	return a
}

func (a *Account) finished(e *Ending, effects int) {
	name := string(e.Status)
	switch {
	case e.Status == runlane.StatusSucceeded && effects == 0:
		a.lost(e.ID, "succeeded without its effect")
		return
	case e.Status == runlane.StatusSucceeded && e.Poison:
		a.problem(e.ID, "succeeded, and its handler never returns")
	case e.Status == runlane.StatusFailed:
		name += " " + string(e.Failure)
		if e.Failure != runlane.ErrLeaseExpired || e.Abandoned != runlane.DefaultMaxAbandoned {
			a.problem(e.ID, "failed with %s after %d abandoned attempts", e.Failure, e.Abandoned)
		}
		if e.Poison {
			name += " (poison)"
		}
	case e.Status != runlane.StatusSucceeded:
		a.problem(e.ID, "is %s, and no caller asked for that", e.Status)
	}
	a.Finished++
	a.Endings[name]++
}

func (a *Account) waiting(e *Ending) {
	if e.Wait == core.WaitNone || !slices.Contains(core.Waits(), e.Wait) {
		a.lost(e.ID, fmt.Sprintf("is %s and waits for nothing that has a name (%q)", e.Status, e.Wait))
		return
	}
	a.Waiting++
	a.Waits[e.Wait]++
	if !e.Far || e.Wait != core.WaitTime {
		a.problem(e.ID, "is %s and still waits: %s", e.Status, e.Wait)
	}
}

func (a *Account) lost(id runlane.RunID, what string) {
	a.Lost++
	a.problem(id, "%s", what)
}

func (a *Account) problem(id runlane.RunID, format string, values ...any) {
	a.Problems = append(a.Problems, string(id)+" "+fmt.Sprintf(format, values...))
}

// String is the account as a table.
func (a *Account) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(what string, n int) { fmt.Fprintf(table, "%s\t%d\n", what, n) }
	line("triggered", a.Triggered)
	line("finished", a.Finished)
	for _, name := range sortedKeys(a.Endings) {
		line("  "+name, a.Endings[name])
	}
	line("waiting", a.Waiting)
	for _, wait := range sortedKeys(a.Waits) {
		line("  for "+string(wait), a.Waits[wait])
	}
	line("lost", a.Lost)
	line("effects", a.Effects)
	line("  in excess of one a run", a.Excess)
	_ = table.Flush() // into memory
	for _, problem := range a.Problems {
		b.WriteString("problem: " + problem + "\n")
	}
	return b.String()
}

func sortedKeys[K cmp.Ordered](m map[K]int) []K { return slices.Sorted(maps.Keys(m)) }
