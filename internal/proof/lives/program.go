package lives

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
)

// program is what a handler does, a letter for each part. A part is named by its place: what waits there, or is
// remembered, has that name.
type program string

// Parts of programs.
const (
	doesStep    = 's' // a step
	waitsSignal = 'w' // for a signal
	asksPerson  = 'p' // for a signal, by a question to a person
	waitsAtMost = 't' // for a signal, up to a time
	waitsAny    = 'a' // for one of two signals
	waitsAll    = 'b' // for two signals, up to a time
	sleeps      = 'z'
	callsOne    = 'c' // fails with what it calls
	callsMany   = 'm' // goes on, however they end
	callsDeeper = 'n' // what waits and calls
)

var programs = []program{
	"s", "w", "t", "sw", "sts", "sp", "sc", "csc", "m", "smw", "az", "bs", "zs", "sn", "nt", "wcs", "cm", "tta", "szsc",
}

// longWait is the time limit of waits, and how long a pause is.
const longWait = 20 * time.Minute

// mostCalled is how many runs one call makes at most.
const mostCalled = 3

// sent is the body of a signal. Each has its own number.
type sent struct {
	N int `json:"n"`
}

// signalAt is the signal that a part of a program waits for, or one of two.
func signalAt(place int, which string) *runlane.Signal[sent] {
	return runlane.NewSignal[sent](strconv.Itoa(place) + which)
}

// performance is an attempt that does what a program says, and tells the book what it was told.
type performance struct {
	p      *process
	a      *runlane.Attempt
	run    creation
	before map[string]bool // steps that had returned to a handler when this attempt began
}

func (p *process) performs(a *runlane.Attempt) *performance {
	run := creationOf(&a.Run)
	return &performance{p: p, a: a, run: run, before: p.life.book.remembered(run)}
}

// all does the parts of a program from a place on. Its error is the handler's.
func (x *performance) all(ctx context.Context, parts program, from int) error {
	for i, part := range parts {
		place := from + i
		if err := x.one(ctx, part, place); err != nil {
			return err
		}
		if !x.p.dead.Load() {
			x.p.life.tally.add("part", string(part), 1)
		}
	}
	return nil
}

func (x *performance) one(ctx context.Context, part rune, place int) error {
	switch part {
	case doesStep:
		return x.step(ctx, strconv.Itoa(place))
	case waitsSignal:
		return x.wait(ctx, place, nil)
	case asksPerson:
		return x.wait(ctx, place, &runlane.WaitOptions{Prompt: "Well?"})
	case waitsAtMost:
		return x.wait(ctx, place, &runlane.WaitOptions{Timeout: longWait})
	case waitsAny:
		return x.waitTwo(ctx, place, runlane.WaitAny, nil)
	case waitsAll:
		return x.waitTwo(ctx, place, runlane.WaitAll, &runlane.WaitOptions{Timeout: longWait})
	case sleeps:
		return x.sleep(ctx, place)
	case callsOne:
		return x.call(ctx, place, "once", payload{N: place})
	case callsMany:
		return x.call(ctx, place, "again", payload{N: place}, payload{N: place}, payload{})
	case callsDeeper:
		return x.call(ctx, place, "program in a slot", payload{N: place, Program: "stc"})
	}
	panic("no part " + string(part))
}

// step is done again only by attempts that began before its result was there.
func (x *performance) step(ctx context.Context, name string) error {
	book := x.p.life.book
	did, err := runlane.Step(ctx, x.a, name, func(context.Context) (int, error) {
		if x.before[name] {
			book.finds("run %s does its step %s again", x.run.id, name)
		}
		return book.number(), nil
	})
	if err != nil {
		return err
	}
	book.remembers(x.run, name)
	book.told(x.run, name, did)
	return nil
}

func (x *performance) wait(ctx context.Context, place int, options *runlane.WaitOptions) error {
	signal := signalAt(place, "")
	got, err := signal.Wait(ctx, x.a, options)
	if err == nil || runlane.Suspended(err) || errors.Is(err, runlane.ErrWaitTimedOut) {
		x.waitAgain(ctx, place, signal)
	}
	return x.answered(place, options, err, answer{signal.Name(), &got})
}

// waitAgain waits for the signal of a wait under another name: it is refused, whatever the first was told. One that
// failed because a storage did not answer was never asked, and has no signal.
func (x *performance) waitAgain(ctx context.Context, place int, signal *runlane.Signal[sent]) {
	var again *sent
	err := runlane.WaitAny(ctx, x.a, &runlane.WaitOptions{
		Name:    strconv.Itoa(place) + " again",
		Timeout: runlane.NoWait,
	}, signal.Into(&again))
	if !x.p.dead.Load() && !errors.Is(err, runlane.ErrValidationFailed) {
		x.p.life.book.finds("run %s waits twice for signal %s: %v, %v", x.run.id, signal.Name(), again, err)
	}
}

type waitCall = func(context.Context, *runlane.Attempt, *runlane.WaitOptions, ...runlane.Case) error

func (x *performance) waitTwo(ctx context.Context, place int, wait waitCall, options *runlane.WaitOptions) error {
	var one, two *sent
	first, second := signalAt(place, "x"), signalAt(place, "y")
	err := wait(ctx, x.a, options, first.Into(&one), second.Into(&two))
	return x.answered(place, options, err, answer{first.Name(), one}, answer{second.Name(), two})
}

// answer is what a wait was told by a signal; nil for none.
type answer struct {
	name string
	body *sent
}

// answered judges the end of a wait. One that is over by its time limit is no failure.
func (x *performance) answered(place int, options *runlane.WaitOptions, err error, answers ...answer) error {
	book, what := x.p.life.book, strconv.Itoa(place)
	if errors.Is(err, runlane.ErrWaitTimedOut) {
		if options == nil || options.Timeout == 0 {
			book.finds("the wait %s of run %s had no time limit, and it is over", what, x.run.id)
		}
		book.told(x.run, what, "over")
		x.p.life.tally.add("wait", "over", 1)
		return nil
	}
	if err != nil {
		return err
	}
	var told [2]int
	for i, a := range answers {
		if a.body != nil {
			told[i] = a.body.N
			book.consumed(x.run, what, a.name, a.body.N)
		}
	}
	if told == [2]int{} {
		book.finds("the wait %s of run %s ended with nothing", what, x.run.id)
	}
	book.told(x.run, what, told)
	return nil
}

func (x *performance) sleep(ctx context.Context, place int) error {
	name := strconv.Itoa(place)
	began := x.p.life.book.begins(x.run, name, x.p.life.clock.Now())
	if err := x.a.Sleep(ctx, name, longWait); err != nil {
		return err
	}
	if slept := x.p.life.clock.Now().Sub(began); slept < longWait-time.Second && !x.p.life.book.hurried(x.run.id) {
		x.p.life.book.finds("run %s slept %s of %s", x.run.id, slept, longWait)
	}
	return nil
}

// errCalled is what a handler returns when the one run that it called did not succeed.
var errCalled = errors.New("what it called did not succeed")

// call makes runs of a task. Every attempt is told the same ends.
func (x *performance) call(ctx context.Context, place int, id runlane.TaskID, loads ...payload) error {
	request := runlane.CallRequest{CallOptions: runlane.CallOptions{Name: strconv.Itoa(place)}}
	for _, load := range loads {
		request.Calls = append(request.Calls, x.p.tasks[id].With(load))
	}
	runs, err := x.a.CallRuns(ctx, request)
	if err != nil {
		return err
	}
	for i, run := range runs {
		if !run.Status.Terminal() {
			x.p.life.book.finds("run %s was told that %s has ended, which is %s", x.run.id, run.ID, run.Status)
		}
		x.p.life.book.told(x.run, fmt.Sprint(request.Name, "/", i), fmt.Sprint(run.ID, run.Status, run.EventSequence))
		x.p.life.tally.add("called", string(run.Status), 1)
	}
	if len(runs) == 1 && runs[0].Status != runlane.StatusSucceeded {
		return runlane.Permanent(errCalled)
	}
	return nil
}
