package crash_test

import (
	"encoding/json"
	"flag"
	"slices"
	"sync"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
)

var (
	both = flag.Bool("both", false, "die on both sides of each effect, also where the two are one moment")
	only = flag.String("only", "", "the only scenario")
)

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
	b := newBench(q)
	b.Both, b.Heard = *both, func(lines []crash.Line) { c.add(t, lines) }
	if *only != "" {
		b.Scenarios = slices.DeleteFunc(b.Scenarios, func(s crash.Scenario) bool { return s.Name != *only })
	} else {
		t.Cleanup(func() { c.report(t) }) // when all scenarios are over
	}
	b.Run(t)
}

func newBench(q *queues) *crash.Bench {
	return &crash.Bench{
		Scenarios: scenarios(), AtOnce: 1,
		Lanes: func(t *testing.T, _ *crash.Scenario) func(*testing.T) crash.Lane {
			t.Helper()
			return lanes(t, q)
		},
		Every: func(*crash.Scenario) int { return 1 },
	}
}

// count is the sites that all children together have come to.
type count struct {
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

// add notes what a child came to on its way.
func (c *count) add(t *testing.T, lines []crash.Line) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lines {
		var of effect
		if len(l.Detail) == 0 {
			continue
		}
		if err := json.Unmarshal(l.Detail, &of); err != nil {
			t.Error(err)
		}
		for _, name := range reached(c.byFile, of.Frames, of.Operation) {
			c.seen[name] = true
		}
	}
}

func (c *count) report(t *testing.T) {
	t.Helper()
	t.Logf("crash sites=%d exceptions=%d", len(c.all), len(exceptions))
	for _, fault := range uncovered(c.all, c.seen, exceptions) {
		t.Error(fault)
	}
}
