// Command killed plays the examples order and nightly on a file, kills the worker by SIGKILL at random moments, starts
// it again each time, and proves that everything ended right:
//
//	killed order      60 orders: each is paid, and sent or, if it was refused, withdrawn or cancelled, undone
//	killed nightly    1,000 shops, one report
//
// Results are on stdout, the last line being the verdict; progress is on stderr. The exit status is 0 when nothing was
// lost and nothing done twice, else 1.
//
// It is a separate module, so that programs which import the examples do not require SQLite.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/runlane/runlane-go/core"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// example is one of the two.
type example interface {
	// sides are what the worker calls, by path. An answer of nil is none.
	sides() map[string]side
	// calls is how many calls there are at least.
	calls() int
	// begin triggers what is to be done.
	begin(ctx context.Context, rt *core.Runtime) error
	// look says what was done and what is wrong, once all runs have ended, after so many deaths of the worker.
	look(ctx context.Context, rt *core.Runtime, deaths int) (*findings, error)
}

// findings are what an example has found in the end.
type findings struct {
	what          string // what it counts
	all, right    int
	lines, faults []string
}

func (f *findings) say(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func (f *findings) wrong(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// count counts one thing, which is right unless a fault was found since.
func (f *findings) count(before int) {
	if f.all++; len(f.faults) == before {
		f.right++
	}
}

// verdict is the last line.
func (f *findings) verdict() string {
	return fmt.Sprintf("demo: %d %s, %d ended right, %d wrong", f.all, f.what, f.right, f.all-f.right)
}

// side does what a worker asks for under a key, and answers. What it has done under a key it does not do again.
type side func(key string, body []byte) (answer any, err error)

// run returns the exit status: 2 for a command line that makes no sense.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("killed", flag.ContinueOnError)
	flags.SetOutput(stderr)
	kills := flags.Int("kills", 20, "`number` of times that the worker is killed")
	patience := flags.Duration("patience", 2*time.Minute, "`time` for everything")
	seed := flags.Uint64("seed", 0, "of the moments; 0 is a new one")
	size := flags.Int("size", 0, "`number` of orders or shops; 0 is 60, or 1000")
	if err := flags.Parse(arguments); err != nil {
		return 2 // the flag set has said why
	}
	if worker := os.Getenv(workerVariable); worker != "" {
		if err := work(ctx, worker); err != nil {
			fmt.Fprintln(stderr, "worker:", err)
			return 1
		}
		return 0
	}
	if *seed == 0 {
		*seed = rand.Uint64() // printed
	}
	var e example
	switch name := flags.Arg(0); {
	case flags.NArg() == 1 && name == "order":
		e = newOrders(max(*size, 0), 60)
	case flags.NArg() == 1 && name == "nightly":
		e = newNight(max(*size, 0), 1000)
	default:
		fmt.Fprintln(stderr, "killed: name one example: order or nightly")
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	h := &harness{example: e, name: flags.Arg(0), seed: *seed, kills: *kills, log: stderr}
	ok, err := h.play(ctx, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "killed: seed %d: %v\n", *seed, err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}
