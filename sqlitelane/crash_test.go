package sqlitelane_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/patience"
	"github.com/runlane/runlane-go/internal/proof/waiting"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// Where the product has effects is not marked (docs/internals/decisions/0012): every command to the file is one, and so
// is the hand-over to a handler. A first child of each scenario says what effects it has; then each of them is a point,
// and another child is killed there. The process that takes over has to bring every run to its end.

// crashVariable makes this program a child that dies.
const crashVariable = "SQLITELANE_TEST_CRASH"

// point is a moment between two effects: before one, or when it is durable and no caller knows. The nth effect of one
// name is meant.
type point struct {
	Name   string
	Number int
	After  bool
	// Nth, where it is not 0, is the nth moment of any name instead.
	Nth int
}

// job is what a child is to do.
type job struct {
	Scenario  string
	Path      string
	Ledger    string
	Ahead     time.Duration
	Target    *point
	Arguments map[string]string
}

// line is what a child says.
type line struct {
	Point    *point        `json:",omitempty"` // it was there
	Promised runlane.RunID `json:",omitempty"` // of a call that returned
	Ended    bool          `json:",omitempty"`
	Error    string        `json:",omitempty"`
}

// trap names effects, and kills the process at one of them.
type trap struct {
	target *point
	mu     sync.Mutex
	seen   map[string]int
	nth    int
	out    *bufio.Writer
}

func (t *trap) say(l line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	_, _ = t.out.Write(append(b, '\n'))
	_ = t.out.Flush()
}

func (t *trap) reach(p point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say(line{Point: &p})
	t.nth++
	if t.target != nil && (*t.target == p || t.target.Nth == t.nth) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // no goroutine says anything after this
	}
}

// effect is a command to the file, named by the functions that give it.
func (t *trap) effect() (durable func()) {
	p := t.number(chain())
	t.reach(p)
	p.After = true
	return func() { t.reach(p) }
}

func (t *trap) number(name string) point {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[name]++
	return point{Name: name, Number: t.seen[name]}
}

// mark is an effect that is no command.
func (t *trap) mark(name string) { t.reach(t.number(name)) }

// chain are the product's functions on the stack, the outermost first.
func chain() string {
	const module = "github.com/runlane/runlane-go/"
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		name, ours := strings.CutPrefix(f.Function, module)
		if ours && !strings.HasSuffix(f.File, "_test.go") && !strings.Contains(f.File, "/internal/") {
			name, _, _ = strings.Cut(name, ".func")
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		if !more {
			break
		}
	}
	slices.Reverse(names)
	return strings.Join(names, " > ")
}

// site is a process of a scenario: the one that dies, or the one that prepares and takes over.
type site struct {
	job

	t       testing.TB
	trap    *trap // nil in the process that does not die
	storage *sqlitelane.Storage
	sends   *sqlitelane.Transport
	rt      *core.Runtime
	disk    *powerloss.Disk // where there is one, see powerloss_runs_test.go
	mu      sync.Mutex
	notes   []note
	ahead   atomic.Int64 // of its clock
	runs    []runlane.RunID
	gone    map[runlane.RunID]bool // pruned
	faults  []string
}

func newSite(t testing.TB, scenario, folder string) *site {
	t.Helper()
	return &site{t: t, gone: map[runlane.RunID]bool{}, job: job{
		Scenario: scenario, Path: filepath.Join(folder, "runlane.db"), Ledger: filepath.Join(folder, "ledger"),
		Arguments: map[string]string{},
	}}
}

func (s *site) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) fault(format string, arguments ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, arguments...))
}

// open starts the process's runtime over the file.
func (s *site) open(c *crashScenario) {
	s.ahead.Store(int64(s.Ahead))
	s.storage = sqlitelane.NewRelaxedStorage(s.Path, s.now)
	switch {
	case s.trap != nil:
		s.storage = sqlitelane.NewTracedStorage(s.Path, s.now, s.trap.effect)
	case s.disk != nil:
		s.storage = sqlitelane.NewStorageOn(s.Path, s.disk, false)
		s.storage.SetNow(s.now)
	}
	s.sends = sqlitelane.NewTransport(s.storage, "turns")
	l, err := lane.New(s.storage, s.sends, nil)
	s.must(err)
	o := &core.Options{Handlers: s.handlers()}
	waiting.Prepare(o)
	if c.options != nil {
		c.options(o)
	}
	o.Logger, o.World = slog.New(slog.DiscardHandler), &core.World{Now: s.now}
	s.rt, err = core.Open(context.Background(), l, o)
	s.must(err)
}

// crashChild lives a scenario, or dies of it.
func crashChild(text string) {
	out := &trap{seen: map[string]int{}, out: bufio.NewWriter(os.Stdout)}
	s := &site{t: failing{}, trap: out}
	if err := json.Unmarshal([]byte(text), &s.job); err != nil {
		panic(err)
	}
	out.target = s.Target
	c := crashScenarios()[s.Scenario]
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	s.open(&c)
	err := errors.Join(c.act(ctx, s), s.rt.Close(ctx))
	if err != nil {
		out.say(line{Error: err.Error()})
		return
	}
	out.say(line{Ended: true})
}

// promise says that a call has returned: from now on the run must not be lost.
func (s *site) promise(id runlane.RunID) {
	if s.trap != nil {
		s.trap.say(line{Promised: id})
	}
	s.note(effect{run: id})
	s.runs = append(s.runs, id)
}

// trial is what one child came to.
type trial struct {
	points   []point
	faults   []string
	lost     int
	executed int
}

// try lets one child live its scenario, or die of it, and takes over. nil: it was to die, and lived.
func try(t *testing.T, name string, target *point) *trial {
	t.Helper()
	c := crashScenarios()[name]
	s := newSite(t, name, memoryFolder(t))
	s.open(&c)
	defer func() { s.must(s.rt.Close(context.Background())) }()
	if c.prepare != nil {
		c.prepare(s)
	}
	lines, died := s.child(target)
	if target != nil && !died {
		return nil
	}
	result := &trial{}
	for _, l := range lines {
		if l.Point != nil {
			result.points = append(result.points, *l.Point)
		}
		if l.Promised != "" {
			s.runs = append(s.runs, l.Promised)
		}
	}
	s.recover(&c)
	s.settle(&c, result)
	return result
}

// recover is what goes on without the process that died.
func (s *site) recover(c *crashScenario) {
	s.t.Helper()
	for range 2 { // more than everything ends after that a dead process leaves: leases, reservations, claims
		s.advance(130 * time.Second)
		s.deliver()
		s.tick()
		s.deliver()
	}
	if c.repeat != nil {
		c.repeat(s)
	}
}

// child starts a process that dies, or lives, and hears it.
func (s *site) child(target *point) (lines []line, died bool) {
	s.t.Helper()
	j := s.job
	j.Target, j.Ahead = target, time.Duration(s.ahead.Load())
	text, err := json.Marshal(j)
	s.must(err)
	self, err := os.Executable()
	s.must(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	command := exec.CommandContext(ctx, self) // this test's own binary
	command.Env = append(os.Environ(), crashVariable+"="+string(text))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	ended := command.Run()
	for text := range strings.Lines(out.String()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil { // what was cut off says nothing
			lines = append(lines, l)
		}
	}
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	died = status.Signaled() && status.Signal() == syscall.SIGKILL && ctx.Err() == nil
	if !died && (ended != nil || len(lines) == 0 || !lines[len(lines)-1].Ended) {
		s.t.Fatalf("%s: the child was to die at %v, and ended with %v: %s\n%s", s.Scenario, target, ended, out.String(), errs.String())
	}
	return lines, died
}

// Every scenario is recorded by a child that lives. Then one child dies at every point.
func TestCrash_SQLite_AtEveryPoint_NothingIsLost(t *testing.T) {
	t.Parallel()
	var tried, total, lost, repeated atomic.Int64
	every := 1
	if testing.Short() {
		every = 5
	}
	t.Cleanup(func() {
		t.Logf("reliability: crash points tried=%d total=%d lost=%d", tried.Load(), total.Load(), lost.Load())
		t.Logf("reliability: side effects repeated=%d", repeated.Load())
	})
	places := make(chan struct{}, 4)
	one := func(t *testing.T, name string, target *point, place int) *trial {
		t.Helper()
		places <- struct{}{}
		defer func() { <-places }()
		// What is done by several goroutines may be done in another order, or by fewer commits: a point that did not come
		// again gives way to the moment that has its place.
		for n := range 8 {
			if n >= 3 && target != nil {
				target = &point{Nth: max(1, place+1-(n-3))}
			}
			if result := try(t, name, target); result != nil {
				for _, fault := range result.faults {
					t.Errorf("%s, killed at %+v: %s", name, target, fault)
				}
				lost.Add(int64(result.lost))
				return result
			}
		}
		return nil
	}
	shared := waits()
	for name := range crashScenarios() {
		every := every
		if _, waiting := shared[name]; waiting {
			every = max(every, 4) // TestPowerLoss_RunsThatWait_GoOn ends each of their commits
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lived := one(t, name, nil, 0)
			if len(lived.points) == 0 {
				t.Fatal("the scenario has no effect")
			}
			for n := len(name) % every; n < len(lived.points); n += every {
				target := lived.points[n]
				total.Add(1)
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()
					died := one(t, name, &target, n)
					if died == nil {
						t.Fatalf("no child came to die at %+v", target)
					}
					tried.Add(1)
					repeated.Add(int64(max(died.executed-lived.executed, 0)))
					// It died in the middle of so many attempts at most.
					if died.executed > lived.executed+max(workers, shared[name].atOnce) {
						t.Errorf("%s, killed at %+v: %d side effects, %d without", name, target, died.executed, lived.executed)
					}
				})
			}
		})
	}
}
