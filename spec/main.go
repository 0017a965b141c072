// Command model explores two protocols state by state: that of markers, slots, outbox rows and leases, which is here,
// and that of runs which wait (package waits). It takes small worlds of a few runs, goes through every interleaving
// of what processes, wakeups and the clock can do there, and asks in every state whether the invariants hold and
// whether every run ends once faults end. docs/internals/model.md says what it covers, what it does not, and how to
// read a trace.
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

// cutOff is how many states of a world of markers are explored unless -full is given.
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
	states := flags.Int("states", 0, "stop a world after this many states; 0 is what its protocol says")
	full := flags.Bool("full", false, fmt.Sprintf("stop a world only after %d states", fullCutOff))
	mutations := flags.Bool("mutations", false, "take out each rule, or that of -without, and show what is found")
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
		ok = printMutations(out, *without, *states)
	default:
		var known bool
		if ok, known = printWorlds(out, *only, *without, *states); !known {
			_, _ = fmt.Fprintf(errOut, "no rule %q\n", *without)
			return 2
		}
	}
	if !ok {
		return 1
	}
	return 0
}

// printWorlds explores the worlds of all protocols, or the one of that name.
func printWorlds(out io.Writer, only string, without string, states int) (ok, known bool) {
	ok, known = true, without == ""
	explored := 0
	for _, p := range protocols() {
		removed, found := p.Without(without)
		if without != "" && !found {
			continue
		}
		known = true
		seen, well := p.PrintWorlds(out, only, removed, states)
		explored += seen
		ok = ok && well
	}
	_, _ = fmt.Fprintf(out, "%d states\n", explored)
	return ok && explored > 0, known
}

func printMutations(out io.Writer, only string, states int) bool {
	ok := true
	for _, p := range protocols() {
		ok = p.PrintMutations(out, only, states) && ok
	}
	return ok
}
