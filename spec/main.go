// Command model explores two protocols state by state: that of markers, slots, outbox rows and leases, which is here,
// and that of runs which wait (package waits). It takes small worlds of a few runs, goes through every interleaving
// of what processes, wakeups and the clock can do there, and asks in every state whether the invariants hold and
// whether every run ends once faults end.
//
// It checks rules, not code: it follows dynamostore and core by hand. Standard library only.
//
// One step is one atomic request with the decision taken from it: a consistent read, a conditional commit, the update of
// a row, a move of a marker, a send. Between two steps of a process anything else may happen, or the process stops for
// ever. Times are small and relative, and time passes at any moment, so leases, claims and reservations end under their
// owners. Wakeups are lost, doubled, delayed and reordered. A reader's clock may be a unit ahead.
//
// In every state: an active run is in due, a finished one is not; a marker is not later than the next inspection that its
// run needs; an inspection of a due row acts or moves it; no commit adds a slot beyond the limit it carries; only the
// owner commits an outcome; nothing changes after the end; abandoned attempts stay within the bound. From every state,
// with all processes stopped and all wakeups lost: a tick a unit of time and workers that serve wakeups end every run,
// or leave it in x for a person, and no slot stays held. So index, relay and messages only make things faster. With
// -latency: reservations shorter than the latency of wakeups go round for ever unless they double.
//
// Not covered: more than three runs, slots and processes (four where runs wait); the lag of the index; a creation that
// reads slots and commits later; owners of keys, schedules, payloads, pruning, shards, page limits, FIFO queues. A world
// that is cut off proves nothing beyond its depth.
//
// A line of a trace is a step and the state after it: "run 0 scheduled o@1 row=published@4 wakeup" is a scheduled run
// with its marker in o, due in one unit; its row was published and is sent again in four; a wakeup is on its way. Runs
// are interchangeable: between two lines run 0 and run 1 may have changed places.
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
