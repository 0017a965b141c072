// Command mutation proves that every condition of dynamostore is needed: it makes one after the other always true, runs
// the tests that reach it, and names those whose absence no test noticed.
//
//	go run ./internal/proof/mutation [-only SUBSTRING] [-without SUBSTRING] [-parallel 2]
//
// It needs local AWS (see scripts/mutation.sh) and changes nothing here: it works on a copy of the module. The copy is
// built once, with every condition behind a switch that the environment sets. A first pass learns which tests reach
// which condition; then each condition is switched off and only those tests run, until one fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "only conditions whose place or text contains this")
	without := flag.String("without", "", "leave out the set of tests whose pattern contains this")
	parallel := flag.Int("parallel", 2, "conditions that are tested at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only, *without, *parallel)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, without string, parallel int) error {
	started := time.Now()
	work, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := copyModule(ctx, work); err != nil {
		return err
	}
	sites, err := instrument(work + "/dynamostore")
	if err != nil {
		return err
	}
	bench := &bench{dir: work, without: without}
	if err := bench.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("mutation: %d conditions, %d sets of tests\n", len(sites), len(bench.chunks))
	var chosen []*site
	for _, s := range sites {
		if strings.Contains(s.place+" "+s.function+" "+s.text, only) {
			chosen = append(chosen, s)
		}
	}
	bench.try(ctx, chosen, parallel)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return report(chosen, only == "" && without == "", time.Since(started))
}

// try switches the conditions off one by one, as many at a time as parallel says.
func (b *bench) try(ctx context.Context, sites []*site, parallel int) {
	var group sync.WaitGroup
	next := make(chan *site)
	for range parallel {
		group.Go(func() {
			for s := range next {
				s.killedBy = b.kill(ctx, s)
				fmt.Printf("%-24s %s: %s\n", s.place, s.name(), s.verdict())
			}
		})
	}
	for _, s := range sites {
		next <- s
	}
	close(next)
	group.Wait()
}

// verdict is the outcome of the tests without the condition.
func (s *site) verdict() string {
	switch reason, equivalent := equivalents[s.name()]; {
	case s.killedBy != "":
		return "killed by " + s.killedBy
	case equivalent:
		return "EQUIVALENT: " + reason
	case len(s.reachedBy) == 0:
		return "SURVIVED: no test reaches it"
	default:
		return fmt.Sprintf("SURVIVED %d sets of tests", len(s.reachedBy))
	}
}

// report names the survivors again and fails for them, and for explanations that explain nothing any more.
func report(sites []*site, all bool, took time.Duration) error {
	survivors, explained := 0, map[string]bool{}
	for _, s := range sites {
		if s.killedBy != "" {
			continue
		}
		if _, equivalent := equivalents[s.name()]; equivalent {
			explained[s.name()] = true
			continue
		}
		survivors++
		fmt.Printf("mutation: survivor: %s %s\n", s.place, s.name())
	}
	fmt.Printf("mutation: %d conditions, %d killed, %d equivalent, %d survivors, %s\n",
		len(sites), len(sites)-len(explained)-survivors, len(explained), survivors, took.Round(time.Second))
	var faults []error
	if survivors > 0 {
		faults = append(faults, fmt.Errorf("%d conditions can be removed and no test fails", survivors))
	}
	for name := range equivalents {
		if all && !explained[name] {
			faults = append(
				faults,
				fmt.Errorf("%q is said to make no difference, but is killed or gone: remove it from the list", name),
			)
		}
	}
	return errors.Join(faults...)
}
