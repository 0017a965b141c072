// Command worker executes the webhooks of the example application in a process that stays: it receives, renews the
// leases of what it executes, and ticks. It is what the Dockerfile packs. docs/containers.md says when to prefer it to
// the functions. It is a separate module, as it opens files, which nothing that is deployed as a function does.
//
// Everything but its flags is in the environment, the same variables as for the functions. RUNLANE_LANE or -lane names
// the lane: "aws:", which is meant when neither says anything, "sqlite:PATH" or "mem:". Told to stop (SIGTERM,
// SIGINT) it takes no more work, lets its attempts finish for -grace, releases the others, and ends with status 0. A
// second signal ends it at once.
package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// closeTime bounds the end after Work has returned.
const closeTime = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run returns the exit status: 1 for a worker that could not begin or go on, 2 for a command line that makes no sense.
func run(ctx context.Context, arguments []string, stderr io.Writer) int {
	options := &core.WorkOptions{}
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&options.Concurrency, "concurrency", runlane.DefaultConcurrency, "how many attempts execute at `once`")
	flags.DurationVar(
		&options.Grace,
		"grace",
		runlane.DefaultGrace,
		"how long attempts may finish after the signal to stop",
	)
	flags.BoolVar(&options.NoTick, "no-tick", false, "leave maintenance to others: the tick function, another worker")
	queues := flags.String(
		"queues",
		"",
		"`names` of the queues to work on, with commas between; all of the tasks' if empty",
	)
	named := flags.String("lane", "", "the lane's `name`, before "+lane.Variable+": aws:, sqlite:PATH or mem:")
	if err := flags.Parse(arguments); err != nil || flags.NArg() > 0 {
		return 2
	}
	if *named != "" {
		if err := os.Setenv(lane.Variable, *named); err != nil { // which is what openers read
			return 2
		}
	}
	for name := range strings.SplitSeq(*queues, ",") {
		if name = strings.TrimSpace(name); name != "" {
			options.Queues = append(options.Queues, runlane.QueueName(name))
		}
	}
	logger := slog.New(slog.NewJSONHandler(stderr, nil))
	slog.SetDefault(logger)
	if err := work(ctx, options); err != nil {
		logger.Error("the worker cannot go on", "code", runlane.CodeOf(err), "error", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, options *core.WorkOptions) error {
	rt, err := webhooks.OpenOn(ctx, memlane.Scheme, sqlitelane.Scheme)
	if err != nil {
		return err
	}
	slog.Info("working", "concurrency", options.Concurrency)
	err = rt.Work(ctx, options)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if closing := rt.Close(ending); err == nil {
		err = closing
	}
	slog.Info("stopped")
	return err
}
