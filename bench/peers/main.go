// Command peers measures Runlane's embedded lane beside what a Go user would pick to run jobs in one process: River on
// PostgreSQL, asynq on Redis, a plain SQLite table, and a bare channel as the ceiling. README.md has the method and
// what it does not show.
//
// Exit 0 also where something cannot be had on this machine: it is named, with the reason. Exit 1 where something
// failed, 2 for wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	dir             string
	json, quick     bool
	only            *regexp.Regexp
	rounds, samples int
	seed            uint64
	window          time.Duration // of a phase
	limit           time.Duration // of all rounds
	workers         int
}

// errUsage says that the arguments are wrong; what is wrong has been written.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(arguments, stderr)
	if err != nil {
		return err
	}
	p, err := newPlace(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	fsync, err := p.fsyncTime()
	if err != nil {
		return err
	}
	r, err := compareAll(ctx, o, p, func(news string) { _, _ = fmt.Fprintln(stderr, news) })
	if err != nil {
		return err
	}
	r.environment = describeEnvironment(o, r.rounds, fsync, inMemory(p.dir))
	write := writeTable
	if o.json {
		write = writeJSON
	}
	if err := write(stdout, r); err != nil {
		return err
	}
	return r.fault()
}

func parseOptions(arguments []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(
		&o.dir,
		"dir",
		"",
		"folder for the data, on the disk that is to be measured; the system's temporary folder if empty",
	)
	flags.BoolVar(&o.json, "json", false, "write one JSON object a line")
	flags.BoolVar(&o.quick, "quick", false, "short phases: under a minute, and rougher")
	only := flags.String("only", "", "regular expression: measure only subjects whose group/name matches")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds, after one to warm up")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "seed of the order of subjects and of the payloads")
	flags.IntVar(&o.workers, "workers", 100, "jobs that execute at once, the same for everybody")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errUsage
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil || flags.NArg() > 0 || o.rounds < 1 || o.workers < 1 {
		_, _ = fmt.Fprintln(
			stderr,
			"peers: -only takes a regular expression, -rounds and -workers at least 1, and nothing else is taken; "+
				"see -help",
		)
		return nil, errUsage
	}
	o.window, o.samples, o.limit = 300*time.Millisecond, 3, 340*time.Second
	if o.quick {
		o.window, o.samples, o.limit = 30*time.Millisecond, 1, 53*time.Second
	}
	return o, nil
}
