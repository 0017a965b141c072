package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/runlane/runlane-go"
)

// When a process dies.
const (
	before = "before" // the effect is not made
	after  = "after"  // it is, and its caller does not know
	there  = "there"  // a moment that is no effect on the storage or the transport
)

// Point is a moment in which a process dies. Effects of one name are numbered: what is done several times is done in
// goroutines, or again. Without a name it is the nth moment of all.
type Point struct {
	Name   string `json:",omitempty"`
	Number int    `json:",omitempty"`
	When   string `json:",omitempty"`
	Nth    int    `json:",omitempty"`
}

func (p Point) String() string {
	return fmt.Sprintf("%s %s (%d, moment %d)", p.When, p.Name, p.Number, p.Nth)
}

// After reports that the effect is made.
func (p *Point) After() bool { return p.When == after }

// is reports that a process that is to die at p dies at a moment.
func (p *Point) is(moment *Point) bool {
	if p.Name == "" {
		return p.Nth == moment.Nth
	}
	return p.Name == moment.Name && p.Number == moment.Number && p.When == moment.When
}

// Line is what a child says, one line of JSON each.
type Line struct {
	Point    *Point          `json:",omitempty"` // it was there
	Detail   json.RawMessage `json:",omitempty"` // what its lane says of the effect
	Promised runlane.RunID   `json:",omitempty"` // a run whose call has returned
	Ended    bool            `json:",omitempty"`
}

// Trap names the moments of a child, and kills it in one of them.
type Trap struct {
	target *Point // nil: nowhere

	mu   sync.Mutex
	seen map[string]int
	nth  int
}

// Effect is called before an effect, and what it returns when the effect is made.
func (t *Trap) Effect(name string, detail any) (made func()) {
	text, err := json.Marshal(detail)
	if err != nil {
		panic(err)
	}
	p := Point{Name: name, When: before}
	t.mu.Lock()
	t.seen[name]++
	p.Number = t.seen[name]
	t.mu.Unlock()
	t.reach(p, text)
	p.When = after
	return func() { t.reach(p, nil) }
}

// mark is a moment that is no effect.
func (t *Trap) mark(name string) {
	t.mu.Lock()
	t.seen[name]++
	p := Point{Name: name, Number: t.seen[name], When: there}
	t.mu.Unlock()
	t.reach(p, nil)
}

// reach says where the process is, and ends it at its target, with no time for anything.
func (t *Trap) reach(p Point, detail json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nth++
	p.Nth = t.nth
	t.write(Line{Point: &p, Detail: detail})
	if t.target != nil && t.target.is(&p) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // no goroutine says anything after this
	}
}

func (t *Trap) say(l Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(l)
}

func (t *Trap) write(l Line) {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(text, '\n')) // a parent that is gone needs no answer
}

// Points are the moments in which a recorded child could have died. The one before an effect is that after the last, and
// so is a mark: both are tried where it is asked for.
func Points(lines []Line, both bool) (all []Point) {
	last := ""
	for _, l := range lines {
		if l.Point == nil {
			continue
		}
		if both || l.Point.When == after || last != after {
			all = append(all, *l.Point)
		}
		last = l.Point.When
	}
	return all
}
