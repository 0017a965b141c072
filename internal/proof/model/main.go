// Command model explores the protocol of markers, slots, outbox rows and leases state by state. It takes small worlds
// of one to three runs, goes through every interleaving of what processes, wakeups and the clock can do there, and asks
// in every state whether the invariants of docs/internals/layout.md hold and whether every run ends once faults end.
// docs/internals/model.md says what it covers, what it does not, and how to read a trace.
//
// It checks rules, not code: it follows dynamostore and core by hand. Standard library only.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// cutOff is how many states of a world are explored unless -full is given.
const cutOff = 1_000_000

// fullCutOff bounds the memory of a full search to 2 or 3 GB. The largest worlds end here.
const fullCutOff = 9_000_000

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process. 1: something was found, or a removed rule that nothing missed.
func run(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.SetOutput(errOut)
	only := flags.String("world", "", "explore only this world")
	without := flags.String("without", "", "take out this rule")
	states := flags.Int("states", cutOff, "stop a world after this many states")
	full := flags.Bool("full", false, fmt.Sprintf("stop a world only after %d states", fullCutOff))
	mutations := flags.Bool("mutations", false, "take out one rule at a time and show what is found")
	latency := flags.Bool("latency", false, "look for reservations that go round for ever")
	if flags.Parse(args) != nil {
		return 2
	}
	if *full {
		*states = fullCutOff
	}
	debug.SetGCPercent(50)
	var ok bool
	switch {
	case *latency:
		ok = printReservations(out)
	case *mutations:
		ok = printMutations(out, *states)
	default:
		removed, known := removal(*without)
		if !known {
			_, _ = fmt.Fprintf(errOut, "no rule %q\n", *without)
			return 2
		}
		ok = printWorlds(out, *only, removed, *states)
	}
	if !ok {
		return 1
	}
	return 0
}

// printWorlds explores the worlds and shows the shortest trace to what it finds.
func printWorlds(out io.Writer, only string, removed rules, states int) bool {
	ok, explored := true, 0
	for _, w := range worlds() {
		if only != "" && w.name != only {
			continue
		}
		w.removed = removed
		f := w.explore(states)
		explored += f.states
		_, _ = fmt.Fprintf(
			out,
			"%-22s %9d states %10d steps  depth %3d  settles within %2d  ",
			w.name,
			f.states,
			f.steps,
			f.depth,
			f.slowest,
		)
		switch {
		case f.bad != "":
			ok = false
			_, _ = fmt.Fprintln(out, "FOUND:", f.bad)
			for i, line := range f.trace {
				_, _ = fmt.Fprintf(out, "  %2d %s\n", i+1, line)
			}
		case f.cut:
			_, _ = fmt.Fprintln(out, "nothing found, cut off")
		default:
			_, _ = fmt.Fprintln(out, "nothing found, complete")
		}
	}
	_, _ = fmt.Fprintf(out, "%d states\n", explored)
	return ok && explored > 0
}

// printMutations takes out each rule and shows the first thing that is found without it.
func printMutations(out io.Writer, states int) bool {
	ok := true
	for _, m := range mutate(states) {
		if !m.caught() {
			ok = false
		}
		_, _ = fmt.Fprintln(out, m)
	}
	return ok
}
