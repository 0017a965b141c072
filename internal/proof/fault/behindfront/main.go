// Command behindfront runs a command with a front before its DynamoDB, which answers as DynamoDB does where emulators
// are kinder (package front), and returns the command's exit status. What the front did is printed at the end, with its
// seed.
//
//	behindfront [-seed N] [-lost PART] COMMAND [ARGUMENT...]
//
// The front stands before AWS_ENDPOINT_URL_DYNAMODB or else AWS_ENDPOINT_URL; the command finds it in
// AWS_ENDPOINT_URL_DYNAMODB, and RUNLANE_LOCAL_DYNAMODB unset. A front that met no conflict, showed nothing late or
// lost no answer proves nothing: the command fails then.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runlane/runlane-go/internal/proof/fault/front"
)

func main() {
	var options front.Options
	flag.Uint64Var(&options.Seed, "seed", 0, "repeat a front; 0 chooses a seed")
	flag.Float64Var(&options.Lost, "lost", 0.02, "the part of the answers that get lost")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &options, flag.Args())
	stop()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(exited.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "behindfront:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options *front.Options, command []string) error {
	backend := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), os.Getenv("AWS_ENDPOINT_URL"))
	if backend == "" || len(command) == 0 {
		return errors.New("set AWS_ENDPOINT_URL, and name a command")
	}
	options.Replica = os.Getenv("RUNLANE_LOCAL_DYNAMODB") // where there is one, it is faster
	f, err := front.Start(backend, options)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...) // the caller's own
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 30 * time.Second
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = environment(os.Environ(), f.URL())
	err = c.Run()
	stats := f.Stats()
	fmt.Fprintf(os.Stderr, "front: seed %d: %v\n", f.Seed(), stats)
	if err == nil && (stats.Conflicts+stats.Refused == 0 || stats.Late == 0 || stats.Lost == 0) {
		err = errors.New("the front was never needed: nothing is shown")
	}
	return errors.Join(err, f.Close())
}

// environment is the command's.
func environment(own []string, endpoint string) []string {
	own = slices.DeleteFunc(slices.Clone(own), func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_ENDPOINT_URL_DYNAMODB=") ||
			strings.HasPrefix(variable, "RUNLANE_LOCAL_DYNAMODB=")
	})
	return append(own, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint)
}
