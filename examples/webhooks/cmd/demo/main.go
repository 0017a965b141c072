// Command demo delivers webhooks reliably to a receiver that fails now and then, and proves that none was lost:
//
//	demo                    everything in this process
//	demo -lane aws          on DynamoDB and SQS, worked by the three Lambda handlers
//	demo -lane aws -resume  finishes one that was interrupted, or killed
//
// Results are on stdout, the last line being the verdict; progress is on stderr. The exit status is 0 when every
// webhook was delivered as it was given, else 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, isTerminal(os.Stderr)))
}

// run returns the exit status: 2 for a command line that makes no sense.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer, terminal bool) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	lane := flags.String("lane", "embedded", "`embedded` or aws")
	input := flags.String(
		"input",
		"",
		"`file` of webhooks, one JSON object a line, plain or gzip (default 329 real ones)",
	)
	noOps := flags.Int("noop", 50, "with -lane aws: how many small runs are measured before the webhooks")
	resume := flags.Bool("resume", false, "with -lane aws: finish the demo that was interrupted")
	seed := flags.Uint64("seed", 1, "of the receiver's failures")
	state := flags.String(
		"state",
		filepath.Join(".local", "demo"),
		"`folder` of the receiver's ledger, the log and what -resume needs",
	)
	if err := flags.Parse(arguments); err != nil {
		return 2 // the flag set has said why
	}
	engine, known := map[string]func() demo.Engine{"embedded": demo.Embedded, "aws": onAWS}[*lane]
	if !known || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "demo: -lane is embedded or aws, and there are no arguments beside flags")
		return 2
	}
	summary, err := demo.Run(ctx, demo.Options{
		Engine: engine(), Input: *input, NoOps: *noOps, Resume: *resume, Seed: *seed, State: *state,
		Terminal: terminal, Stdout: stdout, Stderr: stderr,
	})
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
