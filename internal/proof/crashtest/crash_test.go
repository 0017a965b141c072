package crashtest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

var (
	both = flag.Bool("both", false, "die on both sides of each effect, also where the two are one moment")
	only = flag.String("only", "", "the only scenario")
)

// parallel is how many children live at once.
const parallel = 4

// trial is what one child came to.
type trial struct {
	scenario string
	target   *point // nil: it lived
	lines    []line
	account  *account
}

// tries is how often a child is sent to its point. Where a worker receives while it ticks, or several goroutines publish, a child may
// do its work in another order than the recorded one did, and live.
const tries = 4

// try lets one child live its scenario, or die of it, and looks at its world when two ticks have passed. It is nil where
// the point was one of the recorded child's race, which no other ran.
func (b *bench) try(t *testing.T, target *point, protection string) *trial {
	t.Helper()
	for range tries {
		if r := b.tryOnce(t, target, protection); r != nil {
			return r
		}
	}
	if !target.raced() {
		t.Fatalf("%s: no child came to die %v", b.scenario.name, target)
	}
	return nil
}

// tryOnce returns nil when a child lived that was to die.
func (b *bench) tryOnce(t *testing.T, target *point, protection string) *trial {
	t.Helper()
	w := b.newWorld(t)
	defer w.close()
	s := b.scenario
	if s.prepare != nil {
		s.prepare(w)
	}
	lines, dead := w.run(target, protection)
	if target != nil && !dead {
		return nil
	}
	w.recover()
	if s.repeat != nil {
		s.repeat(w)
	}
	promised := slices.Clone(w.runs)
	for _, l := range lines {
		if l.Promised != "" {
			promised = append(promised, runlane.RunID(l.Promised))
		}
	}
	a := w.settle(promised)
	if s.judge != nil {
		s.judge(a)
	}
	return &trial{scenario: s.name, target: target, lines: lines, account: a}
}

// compare finds side effects that no death explains: one process died, in the middle of so many attempts at most, of
// one run each.
func (r *trial) compare(lived *trial, atOnce int) {
	without := lived.account.executions()
	for run, times := range r.account.executions() {
		if once, both := without[run]; both && times > once+1 {
			r.account.fault("%s executed %d times, and %d times without a death", run, times, once)
		}
	}
	if n := r.account.executed() - lived.account.executed(); n > max(atOnce, 1) {
		r.account.fault("there were %d side effects more than without a death", n)
	}
}

// report makes a trial's faults the test's.
func (r *trial) report(t *testing.T) {
	t.Helper()
	for _, fault := range r.account.faults {
		t.Errorf("%s, killed %v: %s", r.scenario, r.target, fault)
	}
}

// Every scenario is recorded by a child that lives. Then one child dies in every moment between two effects.
func TestCrash_AtEveryPoint_NothingIsLost(t *testing.T) {
	t.Parallel()
	awstest.Config(t)
	q := newQueues()
	t.Cleanup(q.server.Close)
	sites, err := scan(moduleFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	c := newCount(sites)
	t.Cleanup(func() { c.report(t) }) // when all scenarios are over
	places := make(chan struct{}, parallel)
	for _, s := range scenarios() {
		if *only != "" && s.name != *only {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &s, q)
			lived := b.tryAt(t, places, nil, c)
			lived.report(t)
			targets := points(lived.lines, *both)
			c.total.Add(int64(len(targets)))
			if len(targets) == 0 {
				t.Error("the scenario has no effect")
			}
			for i, target := range targets {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					died := b.tryAt(t, places, &target, c)
					if died == nil {
						c.total.Add(-1)
						t.Logf("only the recorded child had a race by which it came to %v", target)
						return
					}
					died.compare(lived, s.atOnce)
					died.report(t)
					c.died(died, lived)
				})
			}
		})
	}
}

// tryAt tries one child, when there is a place for it, and counts.
func (b *bench) tryAt(t *testing.T, places chan struct{}, target *point, c *count) *trial {
	t.Helper()
	places <- struct{}{}
	defer func() { <-places }()
	r := b.try(t, target, "")
	if r != nil {
		c.add(r)
	}
	return r
}

// count is what all trials together have come to.
type count struct {
	tried, total, lost, excess atomic.Int64

	all    []site
	byFile map[string][]site
	mu     sync.Mutex
	seen   map[string]bool // names of sites
}

func newCount(sites []site) *count {
	c := &count{all: sites, byFile: map[string][]site{}, seen: map[string]bool{}}
	for _, s := range sites {
		c.byFile[s.file] = append(c.byFile[s.file], s)
	}
	return c
}

func (c *count) died(r, lived *trial) {
	c.tried.Add(1)
	c.lost.Add(int64(len(r.account.lost)))
	c.excess.Add(int64(max(r.account.executed()-lived.account.executed(), 0)))
}

// add notes what a trial came to on its way.
func (c *count) add(r *trial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range r.lines {
		for _, name := range reached(c.byFile, l.Frames, l.Operation) {
			c.seen[name] = true
		}
	}
}

func (c *count) report(t *testing.T) {
	t.Helper()
	fmt.Fprintf(os.Stdout, "reliability: crash points tried=%d total=%d lost=%d\n", c.tried.Load(), c.total.Load(), c.lost.Load())
	fmt.Fprintf(os.Stdout, "reliability: crash sites=%d exceptions=%d side effects repeated=%d\n",
		len(c.all), len(exceptions), c.excess.Load())
	if *only != "" {
		return
	}
	for _, fault := range uncovered(c.all, c.seen, exceptions) {
		t.Error(fault)
	}
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, file, _, _ := runtime.Caller(0)
	if !strings.HasSuffix(file, "/internal/proof/crashtest/crash_test.go") {
		t.Fatal(fmt.Sprint("this file is ", file))
	}
	return strings.TrimSuffix(folder, "/internal/proof/crashtest")
}
