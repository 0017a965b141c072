package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// Bench tries the scenarios of a lane.
type Bench struct {
	Scenarios []Scenario
	// Lanes returns what makes the lane of each process that prepares a scenario: each has one to itself.
	Lanes func(t *testing.T, s *Scenario) func(t *testing.T) Lane
	// AtOnce is how many attempts a process has at a time.
	AtOnce int
	// Every is how many points of a scenario there are for one that is tried.
	Every func(s *Scenario) int
	// Both dies on both sides of each effect, also where the two are one moment.
	Both bool
	// Heard, where it is not nil, hears what each child said.
	Heard func(lines []Line)

	tried, total, lost, repeated atomic.Int64
	once                         sync.Once
	places                       chan struct{}
}

// parallel is how many children live at once.
const parallel = 4

// tries is how often a child is sent to its point. What is done by several goroutines may be done in another order than
// the recorded child did it, or by fewer commits: a point that did not come again gives way to the moment that has its
// place, or to one before.
const tries, retries = 3, 5

// Run records every scenario by a child that lives. Then one child dies at every point.
func (b *Bench) Run(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		t.Logf("crash points tried=%d total=%d lost=%d", b.tried.Load(), b.total.Load(), b.lost.Load())
		t.Logf("side effects repeated=%d", b.repeated.Load())
	})
	for _, s := range b.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			lanes := b.Lanes(t, &s)
			lived, lines := b.Try(t, lanes(t), &s, nil)
			report(t, &s, nil, lived)
			targets := Points(lines, b.Both)
			if len(targets) == 0 {
				t.Error("the scenario has no effect")
			}
			every := b.Every(&s)
			for i := len(s.Name) % every; i < len(targets); i += every {
				target := targets[i]
				b.total.Add(1)
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					b.die(t, lanes, &s, target, lived)
				})
			}
		})
	}
}

func (b *Bench) die(t *testing.T, lanes func(t *testing.T) Lane, s *Scenario, target Point, lived *End) {
	t.Helper()
	for n := range tries + retries {
		if n >= tries {
			target = Point{Nth: max(1, target.Nth-min(n-tries, 1))}
		}
		died, _ := b.Try(t, lanes(t), s, &target)
		if died == nil {
			continue
		}
		b.tried.Add(1)
		b.lost.Add(int64(died.Lost))
		b.repeated.Add(int64(died.compare(lived, max(b.AtOnce, s.AtOnce))))
		report(t, s, &target, died)
		return
	}
	t.Fatalf("%s: no child came to die %v", s.Name, target)
}

// report makes faults the test's.
func report(t *testing.T, s *Scenario, target *Point, e *End) {
	t.Helper()
	for _, fault := range e.Faults() {
		t.Errorf("%s, killed %v: %s", s.Name, target, fault)
	}
}

// Try lets one child live its scenario, or die of it, and takes over. It returns nil when it was to die, and lived.
func (b *Bench) Try(t *testing.T, l Lane, s *Scenario, target *Point) (*End, []Line) {
	t.Helper()
	b.once.Do(func() { b.places = make(chan struct{}, parallel) })
	b.places <- struct{}{}
	defer func() { <-b.places }()
	p := NewProcess(t, s.Name, filepath.Join(t.TempDir(), "ledger"), l)
	p.Open(s)
	defer p.Close()
	if s.Prepare != nil {
		s.Prepare(p)
	}
	lines, died := p.child(target)
	if target != nil && !died {
		return nil, nil
	}
	for _, l := range lines {
		if l.Promised != "" {
			p.Promised = append(p.Promised, l.Promised)
		}
	}
	if b.Heard != nil {
		b.Heard(lines)
	}
	p.Recover(s)
	return p.Settle(s), lines
}

// variable makes a test's program a child that does the job which it holds.
const variable = "RUNLANE_CRASH_JOB"

// child starts a process that dies, or lives, and hears it.
func (p *Process) child(target *Point) (lines []Line, died bool) {
	p.TB.Helper()
	j := p.Job
	j.Target, j.Ahead, j.Place = target, p.Moved(), p.Lane.Place()
	text, err := json.Marshal(j)
	p.Must(err)
	self, err := os.Executable()
	p.Must(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	command := exec.CommandContext(ctx, self) // this test's own binary
	command.Env = append(p.Lane.Environ(), variable+"="+string(text))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	ended := command.Run()
	for text := range strings.Lines(out.String()) {
		var l Line
		if json.Unmarshal([]byte(text), &l) == nil { // what was cut off says nothing
			lines = append(lines, l)
		}
	}
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	died = status.Signaled() && status.Signal() == syscall.SIGKILL && ctx.Err() == nil
	lived := ended == nil && len(lines) > 0 && lines[len(lines)-1].Ended
	if died && target == nil || !died && !lived {
		p.TB.Fatalf("%s: the child was to die %v, and ended with %v:\n%s\n%s",
			p.Scenario, target, ended, tail(out.String()), tail(errs.String()))
	}
	return lines, died
}

// tail is the end of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Child lives a scenario, or dies of it, if this program was started for that. A test calls it first of all.
func Child(scenarios func() []Scenario, open func(place map[string]string, trap *Trap) Lane) (ok bool) {
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	p := &Process{TB: NoTest{}, trap: &Trap{seen: map[string]int{}}}
	if err := json.Unmarshal([]byte(text), &p.Job); err != nil {
		panic(err)
	}
	p.trap.target, p.Lane = p.Target, open(p.Place, p.trap)
	s := Find(scenarios(), p.Scenario)
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	p.Open(s)
	p.Must(p.act(ctx, s))
	p.Close()
	p.trap.say(Line{Ended: true})
	return true
}

// act does what the scenario's process does until it dies.
func (p *Process) act(ctx context.Context, s *Scenario) error {
	if s.Act != nil {
		return s.Act(ctx, p)
	}
	return p.Lane.Deliver(ctx, p, false)
}

// Live does what a process does that does not die.
func (p *Process) Live(s *Scenario) {
	p.TB.Helper()
	p.Must(p.act(context.Background(), s))
}

// Find returns the scenario of a name.
func Find(all []Scenario, name string) *Scenario {
	at := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("there is no scenario %q", name))
	}
	return &all[at]
}

// NoTest is the testing.TB of a process that is no test.
type NoTest struct{ testing.TB }

// Helper does nothing.
func (NoTest) Helper() {}

// Fatalf ends the process.
func (NoTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Fatal ends the process.
func (NoTest) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
