// Command demo delivers webhooks reliably to a receiver that fails now and then, and proves that none was lost.
// RUNLANE_LANE chooses where it keeps runs:
//
//	demo                    in a file of SQLite below .local/demo, or the one that RUNLANE_LANE=sqlite:PATH names
//	demo -kill              kills itself in the middle of its deliveries, starts again and finishes them
//	demo -resume            finishes one that was interrupted, or killed
//	RUNLANE_LANE=mem: demo  in its memory
//	RUNLANE_LANE=aws: demo  on DynamoDB and SQS, worked by the three Lambda handlers
//
// Results are on stdout, the last line being the verdict; progress is on stderr. The exit status is 0 when every
// webhook was delivered as it was given, else 1.
//
// It is a separate module, so that programs which import the example do not require SQLite.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
	"github.com/runlane/runlane-go/lane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, isTerminal(os.Stderr)))
}

// run returns the exit status: 2 for a command line that makes no sense.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer, terminal bool) int {
	options := demo.Options{Terminal: terminal, Stdout: stdout, Stderr: stderr}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&options.Die, "die", false, "die by SIGKILL in the middle: what -kill starts")
	flags.StringVar(&options.Input, "input", "",
		"`file` of webhooks, one JSON object a line, plain or gzip (default 329 real ones)")
	kill := flags.Bool("kill", false, "die by SIGKILL in the middle of the deliveries, start again and finish them")
	flags.IntVar(&options.NoOps, "noop", 50,
		"with RUNLANE_LANE=aws: how many small runs are measured before the webhooks")
	flags.BoolVar(&options.Resume, "resume", false, "finish the demo that was interrupted")
	flags.Uint64Var(&options.Seed, "seed", 1, "of the receiver's failures")
	flags.StringVar(&options.State, "state", filepath.Join(".local", "demo"),
		"`folder` of the receiver's ledger, the log, the file of runs and what -resume needs")
	if err := flags.Parse(arguments); err != nil {
		return 2 // the flag set has said why
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(stderr, "demo: there are no arguments beside flags;", lane.Variable, "names the lane")
		return 2
	}
	options.Engine = engine(cmp.Or(os.Getenv(lane.Variable), "sqlite:"+demo.RunsFile(options.State)))
	if *kill {
		return killed(arguments, &options)
	}
	summary, err := demo.Run(ctx, options)
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
	}
	if err != nil || !summary.Complete() {
		return 1
	}
	return 0
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
