package lives

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// drawSignal draws a signal: early or late, to a run that waits for it or does not, has ended, or never was; now and
// then one that was sent before, with its id, and with another body or the same. again says so.
func (l *life) drawSignal() (s sending, again bool) {
	if len(l.sent) > 0 && l.chance("again", 4) {
		s = pick(l, "sent", l.sent)
		if l.chance("another body", 4) {
			s.n = l.book.number()
		}
		l.book.sends(s)
		return s, true
	}
	s = sending{run: "absent", n: l.book.number()}
	run := l.someRun(l.mayWait)
	if run != nil {
		s.run = run.ID
	}
	names := []string{"0", "1", "0x", "1y"}
	if run != nil && run.Waiting.Has(runlane.WaitingSignal) && !l.chance("another name", 4) {
		names = run.Waiting.Names
	}
	s.name, s.id = pick(l, "name", names), fmt.Sprint("signal ", s.n)
	l.book.sends(s)
	l.sent = append(l.sent, s)
	return s, false
}

func (l *life) mayWait(run *runlane.Run) bool {
	return run.Status.Active() && taskOf(run.TaskID).waits()
}

// stepSignal sends one.
func (l *life) stepSignal() bool {
	if !slices.ContainsFunc(l.book.runs(), l.mayWait) && !l.chance("in vain", 10) {
		return false
	}
	a := l.drawSending(l.process())
	a.do()
	a.judge()
	return true
}

// drawSending draws a process that sends a signal, which may end with these errors, too.
func (l *life) drawSending(p *process, codes ...runlane.ErrorCode) *act {
	s, again := l.drawSignal()
	known := slices.IndexFunc(l.book.runs(), func(run *runlane.Run) bool { return run.ID == s.run })
	ended := known >= 0 && l.book.runs()[known].Status.Terminal()
	switch {
	case known < 0:
		codes = append(codes, runlane.ErrRunNotFound)
	case ended:
		codes = append(codes, runlane.ErrRunEnded)
	}
	l.note("  %s: %s of %s, again: %t", p.name, s.describe(), s.run, again)
	var err error
	return &act{
		do: func() { err = p.send(l, s) },
		judge: func() {
			if again {
				codes = append(codes, runlane.ErrStorageConflict)
			}
			l.allows(p, "signal", err, codes...)
			switch {
			case p.dead.Load() || err != nil:
				l.tally.add("signal", string(runlane.CodeOf(err)), 1)
			case ended && !again:
				l.fail("the signal %s was taken by run %s, which had ended", s.describe(), s.run)
			default:
				l.book.accepts(s.run, s.name)
				l.tally.add("signal", "kept", 1)
			}
		},
	}
}

func (s sending) describe() string { return fmt.Sprintf("%q with %d, %s", s.name, s.n, s.id) }

func (p *process) send(l *life, s sending) error {
	value := runlane.NewSignal[sent](s.name).With(sent{s.n})
	return p.rt.Signal(l.ctx, s.run, value, &runlane.SignalOptions{ID: s.id})
}

// answerAll ends every wait that time does not end: with the signals that were never sent, and by operators. What was
// sent has to have ended its wait.
func (l *life) answerAll() {
	for _, run := range l.book.runs() {
		if run.Status.Terminal() {
			continue
		}
		switch got := l.explain(run); {
		case got.Wait == core.WaitBlocked:
			if _, err := l.observer.rt.Runs().Resume(l.ctx, run.ID, nil); err != nil {
				l.fail("resume %s: %v", run.ID, err)
			}
		case run.Waiting != nil && !run.Waiting.Until.IsZero() && l.chance("until its time limit", 2):
		case run.Waiting.Has(runlane.WaitingSignal) || run.Waiting.Has(runlane.WaitingInput):
			l.answer(run)
		}
	}
}

func (l *life) answer(run *runlane.Run) {
	all := slices.ContainsFunc(run.Waiting.Names, func(name string) bool { return !l.book.accepted(run.ID, name) })
	for _, name := range run.Waiting.Names {
		if l.book.accepted(run.ID, name) {
			if !run.Waiting.All || !all {
				l.fail("run %s waits for the signal %q, which it has", run.ID, name)
			}
			continue
		}
		s := sending{run: run.ID, name: name, n: l.book.number()}
		s.id = "last " + strconv.Itoa(s.n)
		l.book.sends(s)
		if err := l.observer.send(l, s); err != nil {
			l.fail("signal %q to %s: %v", name, run.ID, err)
		}
		l.book.accepts(run.ID, name)
		if !run.Waiting.All {
			return
		}
	}
}
