// Command mutation proves that everything which keeps runs from being lost or executed twice is needed: it takes one
// thing after the other out, runs the tests that may miss it, and names those whose absence no test noticed. What is
// taken out is every condition of dynamostore, which is made always true, and then every protection
// (internal/tools/mutation/protection), at the seam of the AWS SDK.
//
//	go run ./internal/tools/mutation [-only SUBSTRING] [-without SUBSTRING] [-parallel 2]
//	go run ./internal/tools/mutation -protections
//
// It needs local AWS (see scripts/mutation.sh) and changes nothing here: it works on a copy of the module. The copy is
// built once, with every condition behind a switch that the environment sets. A first pass learns which tests reach
// which condition; then each condition is switched off and only those tests run, until one fails. With -protections
// it asks more tests, with nothing but protections taken out, and names all that fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("only", "", "only what has this in its place or text")
	without := flag.String("without", "", "leave out the set of tests whose pattern contains this")
	parallel := flag.Int("parallel", 2, "how much is tried at once")
	protectionsOnly := flag.Bool("protections", false, "only the protections, and name every test that misses them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *protectionsOnly {
		err = runProtections(ctx)
	} else {
		err = run(ctx, *only, *without, *parallel)
	}
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
	removals, err := instrument(work + "/dynamostore")
	if err != nil {
		return err
	}
	bench := &bench{dir: work, without: without, output: io.Discard}
	if err := bench.build(ctx, work); err != nil {
		return err
	}
	if err := bench.learn(ctx, removals); err != nil {
		return err
	}
	fmt.Printf("mutation: %d conditions, %d sets of tests\n", len(removals), len(bench.chunks))
	removals = slices.DeleteFunc(append(removals, protections(false)...), func(r *removal) bool {
		return !strings.Contains(r.place+" "+r.function+" "+r.text, only)
	})
	if err := bench.try(ctx, removals, parallel); err != nil {
		return err
	}
	return report(removals, only == "" && without == "", time.Since(started))
}

// runProtections prints a line for each protection.
func runProtections(ctx context.Context) error {
	work, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	bench := &bench{dir: ".", output: os.Stderr}
	if err := bench.build(ctx, work); err != nil {
		return err
	}
	var faults []error
	for _, r := range protections(true) {
		if err := bench.miss(ctx, r, true); err != nil {
			return err
		}
		fmt.Printf("mutation: without %s: %d fail: %s\n", r.text, len(r.missedBy), strings.Join(r.missedBy, ", "))
		if len(r.missedBy) == 0 {
			faults = append(faults, fmt.Errorf("no test misses the protection %q", r.text))
		}
	}
	return errors.Join(faults...)
}

// try takes everything out one by one, as much at a time as parallel says.
func (b *bench) try(ctx context.Context, removals []*removal, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, r := range removals {
		group.Go(func() error {
			if err := b.miss(ctx, r, false); err != nil {
				return err
			}
			fmt.Printf("%-24s %s: %s\n", r.place, r.name(), r.verdict())
			return nil
		})
	}
	return group.Wait()
}

// verdict is the outcome of the tests without it.
func (r *removal) verdict() string {
	switch reason, equivalent := equivalents[r.name()]; {
	case len(r.missedBy) > 0:
		return "killed by " + r.missedBy[len(r.missedBy)-1] // a subtest follows its test
	case equivalent:
		return "EQUIVALENT: " + reason
	case len(r.sets) == 0:
		return "SURVIVED: no test reaches it"
	default:
		return fmt.Sprintf("SURVIVED %d sets of tests", len(r.sets))
	}
}

// report names the survivors again and fails for them, and for explanations that explain nothing any more.
func report(removals []*removal, all bool, took time.Duration) error {
	survivors, explained := 0, map[string]bool{}
	for _, r := range removals {
		if len(r.missedBy) > 0 {
			continue
		}
		if _, equivalent := equivalents[r.name()]; equivalent {
			explained[r.name()] = true
			continue
		}
		survivors++
		fmt.Printf("mutation: survivor: %s %s\n", r.place, r.name())
	}
	fmt.Printf("mutation: %d conditions and protections, %d killed, %d equivalent, %d survivors, %s\n",
		len(removals), len(removals)-len(explained)-survivors, len(explained), survivors, took.Round(time.Second))
	var faults []error
	if survivors > 0 {
		faults = append(faults, fmt.Errorf("%d can be taken out and no test fails", survivors))
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
