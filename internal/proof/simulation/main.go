// Command simulation is a discrete-event simulation of the deployed engine far beyond one machine: partitions, index
// shards, queue, mapping, functions and tick, under the limits that AWS publishes. It needs nothing but Go.
// docs/simulation.md says what it assumes, and what its figures mean.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

func main() {
	seed := flag.Uint64("seed", 1, "the `number` that chance is drawn from; equal seeds give equal reports")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(os.Stdout, *seed, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "simulation:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, seed uint64, asJSON bool) error {
	debug.SetGCPercent(400) // memory is not what is short here
	r := investigate(seed, everything)
	if !asJSON {
		return r.write(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
