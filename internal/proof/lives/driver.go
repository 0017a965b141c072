package lives

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// driver draws a life: what happens in it, step by step, and what is asked for after each step. With an oracle that is
// what the oracle says: the exact result. Without one it is what must hold whatever happens.
type driver[L any] struct {
	self  L
	fate  fate
	tally *tally
	habit *habit
	steps []step[L]
	now   func() time.Time // of the life
	// before is called before each step, after once it was done, conclude when there are no more.
	before, after, conclude func()
	// soon is a short wait, and delays are all: the shortest are for an oracle, to which each millisecond counts.
	soon    time.Duration
	delays  []time.Duration
	history []note
}

// step is one kind of step. It returns false when there is nothing that it could do now.
type step[L any] struct {
	name   string
	weight int
	do     func(l L) bool
}

// habit is what happens often in one life, so that rare things come together.
type habit struct {
	name      string
	tasks     []*task
	outcomes  []string
	more      map[string]int // weights of steps
	scheduled bool
	reuses    bool  // half of the runs have one of two ids and, like the others, the one singleton key
	steps     []int // as often as their weights say
}

// spread fills in the steps of habits.
func spread[L any](habits []*habit, steps []step[L]) {
	for _, h := range habits {
		for i, s := range steps {
			weight := s.weight
			if other, set := h.more[s.name]; set {
				weight = other
			}
			for range weight {
				h.steps = append(h.steps, i)
			}
		}
	}
}

// lengths prefers short lives: there are more of them.
var lengths = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 30, 40}

// live is the whole of a life: some runs to begin with, which the first step makes, steps, and the end.
func (d *driver[L]) live() {
	length := pick(d, "steps", lengths)
	for range d.below("runs", 4) {
		d.does(&d.steps[0])
	}
	for range length {
		d.step()
	}
	d.conclude()
	d.tally.add("sequence", "all", 1)
}

// step does one thing. What cannot be done now gives way to something else.
func (d *driver[L]) step() {
	for range 5 {
		if d.does(&d.steps[pick(d, "step", d.habit.steps)]) {
			return
		}
	}
}

func (d *driver[L]) does(s *step[L]) bool {
	d.before()
	said := len(d.history)
	d.note("%s", s.name)
	if !s.do(d.self) {
		d.history = d.history[:said]
		return false
	}
	d.tally.add("step", s.name, 1)
	d.after()
	return true
}

// note is what a step did, written out only when the life fails.
type note struct {
	at     time.Time
	format string
	args   []any
}

// note tells of it.
func (d *driver[L]) note(format string, args ...any) {
	d.history = append(d.history, note{d.now(), format, args})
}

// fail ends the life, with everything that led here.
func (d *driver[L]) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, n := range d.history {
		text += "\n" + n.at.Format("02T15:04:05.000 ") + fmt.Sprintf(n.format, n.args...)
	}
	d.fate.fail(text)
}

// fate is where the choices of a life come from.
type fate interface {
	bit(label string) bool
	// fail does not return.
	fail(text string)
}

// seededFate panics with what fails.
type seededFate struct{ *rand.Rand }

type failure string

func (f seededFate) bit(string) bool  { return f.Uint64()>>63 == 1 }
func (f seededFate) fail(text string) { panic(failure(text)) }

// below draws a number below n, each as likely as the others: rapid's own generators of numbers prefer small ones.
func (d *driver[L]) below(label string, n int) int {
	drawn, length := 0, bits.Len(uint(n-1)) // positive
	if n&(n-1) != 0 {
		length += 2 // so that what does not divide evenly matters little
	}
	for range length {
		drawn <<= 1
		if d.fate.bit(label) {
			drawn++
		}
	}
	return drawn * n >> length
}

// chance is true once in so many times.
func (d *driver[L]) chance(label string, in int) bool { return d.below(label, in) == in-1 }

// drawer is a life of either kind.
type drawer interface {
	below(label string, n int) int
	chance(label string, in int) bool
}

// pick draws one of several.
func pick[T any](d drawer, label string, list []T) T { return list[d.below(label, len(list))] }

// someOf draws one of the runs that a step is about, now and then any; the zero value when there is none.
func someOf[R any](d drawer, runs []R, wanted func(R) bool) (run R) {
	if !d.chance("any", 10) {
		runs = slices.DeleteFunc(runs, func(run R) bool { return !wanted(run) })
	}
	if len(runs) == 0 {
		return run
	}
	return pick(d, "run", runs)
}

const mostRuns = 12

// onlyKey is the one singleton key.
const onlyKey = "one"

// drawOptions draws a call; queues and keys are few, so that runs get in each other's way.
func (d *driver[L]) drawOptions(list []*task) (t *task, p payload, o runlane.TriggerOptions) {
	t = pick(d, "task", list)
	p.N = d.below("payload", 3)
	if t.queue == slotQueue && d.chance("key", 4) {
		p.Key = concurrencyKeys[1]
	}
	if t.queue != plainQueue && !d.habit.reuses && d.chance("idempotency", 4) {
		o.IdempotencyKey = pick(d, "idempotency key", []string{"i1", "i2"})
		o.IdempotencyTTL = pick(d, "ttl", []time.Duration{0, runlane.WhileActive, time.Minute, 2 * time.Hour})
		o.StrictPayload = d.chance("strict", 3)
	}
	if t.queue != plainQueue && (d.habit.reuses || d.chance("singleton", 5)) {
		o.SingletonKey = onlyKey
		o.ReturnActive = d.chance("return active", 2)
	}
	if d.chance("named", 10) || d.habit.reuses && d.chance("named again", 2) {
		o.RunID = pick(d, "id", []runlane.RunID{"mine-1", "mine-2"})
	}
	return t, p, o
}

// drawDelay puts a run off, or not.
func (d *driver[L]) drawDelay(o *runlane.TriggerOptions) {
	switch d.below("when", 10) {
	case 0:
		o.Delay = pick(d, "delay", d.delays)
	case 1:
		o.RunAt = d.now().Add(pick(d, "run at", d.delays))
	case 2:
		o.RunAt = d.now().Add(-time.Hour)
	}
	o.Deferred = d.chance("deferred", 8)
}

// drawOutcome draws what a handler does in the end.
func (d *driver[L]) drawOutcome() outcome {
	o := outcome{kind: pick(d, "outcome", d.habit.outcomes)}
	switch o.kind {
	case releases:
		o.delay = pick(d, "release", []time.Duration{0, d.soon, time.Minute, 20 * time.Minute, 400 * 24 * time.Hour})
	case retryAfter:
		o.delay = pick(d, "retry after", []time.Duration{0, 2 * time.Second, 16 * time.Minute})
	}
	return o
}
