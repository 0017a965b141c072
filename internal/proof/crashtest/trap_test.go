package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// When the process dies.
const (
	before = "before" // the effect is not sent
	after  = "after"  // its answer has arrived, and the caller has not seen it
	there  = "there"  // a moment that is no request
)

// point is where a process dies. Effects of one name are numbered: what is done several times, is done in goroutines, or again.
type point struct {
	Name   string `json:"name"` // the chain of functions and the operation
	Number int    `json:"number"`
	When   string `json:"when"`
}

func (p point) String() string { return fmt.Sprintf("%s %s (%d)", p.When, p.Name, p.Number) }

// raced reports a point that a race alone may have brought: several goroutines of one call write the same commit when all
// of them read before the first has written. The storage refuses all but one, so the others have no effect to die beside.
func (p *point) raced() bool {
	return p != nil && p.Number > 1 && strings.Contains(p.Name, "core.inParallel")
}

// line is what a child says, one line of JSON each.
type line struct {
	Effect    *point  `json:"effect,omitempty"` // comes next
	Operation string  `json:"operation,omitempty"`
	Frames    []frame `json:"frames,omitempty"`
	Promised  string  `json:"promised,omitempty"` // a run whose call has returned
	Dies      *point  `json:"dies,omitempty"`
	Error     string  `json:"error,omitempty"`
	Ended     bool    `json:"ended,omitempty"`
}

// trap is the child's middleware: it names effects and kills the process at one of them.
type trap struct {
	target *point // nil: nowhere
	breaks func(in any)

	mu       sync.Mutex
	seen     map[string]int
	answered map[string]bool // by operation
}

func newTrap() *trap { return &trap{seen: map[string]int{}, answered: map[string]bool{}} }

// saw reports whether an operation was answered.
func (t *trap) saw(operation string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered[operation]
}

func (t *trap) say(l line) {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n')) // a parent that is gone needs no answer
}

// install is for aws.Config.APIOptions.
func (t *trap) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("trap", t.handle), middleware.After)
}

func (t *trap) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	operation := awsmiddleware.GetOperationName(ctx)
	if !operations[operation] {
		return next.HandleInitialize(ctx, in)
	}
	frames := parseStack(string(debug.Stack()), root())
	p := t.number(chain(frames) + ": " + operation)
	t.say(line{Effect: &p, Operation: operation, Frames: frames})
	t.die(p, before)
	if t.breaks != nil {
		t.breaks(in.Parameters)
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	t.die(p, after)
	t.mu.Lock()
	t.answered[operation] = true
	t.mu.Unlock()
	return out, metadata, err
}

// mark is a point that is no request: what the product hands over to an application, or answers to Lambda.
func (t *trap) mark(name string) {
	p := t.number(name)
	p.When = there
	t.say(line{Effect: &p})
	t.die(p, there)
}

func (t *trap) number(name string) point {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[name]++
	return point{Name: name, Number: t.seen[name]}
}

// die ends the process at its target, and leaves it no time for anything.
func (t *trap) die(p point, when string) {
	p.When = when
	if t.target == nil || *t.target != p {
		return
	}
	t.say(line{Dies: &p})
	t.mu.Lock() // no goroutine writes after this
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// points are the moments at which a recorded child could have died: before its first effect, and after each. The moment before an
// effect is the one after the last, but for what goroutines do at once: both dies on both sides of each.
func points(lines []line, both bool) []point {
	var all []point
	last := "" // when the last point was
	for _, l := range lines {
		if l.Effect == nil {
			continue
		}
		when := []string{before, after}
		switch {
		case l.Effect.When == there && (both || last != after):
			when = []string{there}
		case l.Effect.When == there:
			when = nil
		case !both && last != "":
			when = []string{after}
		}
		for _, w := range when {
			p := *l.Effect
			p.When = w
			all = append(all, p)
		}
		if last = after; l.Effect.When == there {
			last = there
		}
	}
	return all
}

// readLines reads what a child said. A line that was cut off by its end says nothing.
func readLines(text string) []line {
	var lines []line
	for t := range strings.Lines(text) {
		var l line
		if json.Unmarshal([]byte(t), &l) == nil {
			lines = append(lines, l)
		}
	}
	return lines
}
