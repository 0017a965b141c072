package lives

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// conclude mends everything and lets time pass: each run ends, however badly it was treated, or waits for something
// with a name.
func (l *life) conclude() {
	l.note("conclude")
	l.world.Calm()
	l.trouble.begin(0, nil)
	calm := weathers[0]
	l.weather = &calm
	for _, v := range l.flying {
		l.finish(v, outcome{kind: succeeds})
	}
	l.flying = nil
	if l.schedule != nil {
		if err := l.observer.rt.Schedules().Pause(l.ctx, scheduleID, nil); err != nil {
			l.fail("pause: %v", err)
		}
	}
	leave := l.chance("leave dead letters", 2) && !l.depends()
	l.look()
	l.goOn(leave)
	if l.retryFlows() {
		l.goOn(leave)
	}
	l.account(leave)
	for _, g := range l.graphs {
		l.judgeFlow(g)
	}
}

// goOn lets time pass until nothing moves on.
func (l *life) goOn(leave bool) {
	for range 150 {
		l.answerAll()
		until := l.nextChange(leave)
		if until.IsZero() {
			if !l.flowsGoOn() {
				break
			}
			until = l.clock.Now().Add(longWait) // an interrupted start ends after an hour
		}
		l.clock.Advance(max(until.Sub(l.clock.Now()), time.Minute))
		l.tickAll()
		l.look()
		l.requeueAll(leave)
		l.deliverAll()
		l.look()
	}
}

// depends reports that something may wait for a run that is a dead letter.
func (l *life) depends() bool {
	return len(l.graphs) > 0 || slices.ContainsFunc(l.book.runs(), func(run *runlane.Run) bool {
		return taskOf(run.TaskID).waits()
	})
}

// nextChange is when the first of the runs moves on that a worker can execute; zero when there is none. One that waits
// for other runs moves on with them: only where there are no others is it looked at without delay.
func (l *life) nextChange(leave bool) (first time.Time) {
	depends := false
	for _, run := range l.book.runs() {
		if run.Status.Terminal() || taskOf(run.TaskID).strange {
			continue
		}
		got := l.explain(run)
		if got.Wait == core.WaitOperator && leave {
			continue
		}
		until := got.Until
		if until.IsZero() {
			if got.Wait == core.WaitRuns {
				depends = true
				continue
			}
			until = l.clock.Now()
		}
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	if first.IsZero() && depends {
		first = l.clock.Now()
	}
	return first
}

func (l *life) tickAll() {
	for range 50 {
		result, err := l.observer.rt.Tick(l.ctx, nil)
		if err != nil {
			l.fail("tick: %v", err)
		}
		if !result.More {
			return
		}
	}
	l.fail("a tick always finds more to do")
}

func (l *life) requeueAll(leave bool) {
	if leave {
		return
	}
	for _, run := range l.book.runs() {
		if run.Status.Active() && l.explain(run).Wait == core.WaitOperator {
			if err := l.observer.rt.DeadLetters().Requeue(l.ctx, run.ID, nil); err != nil {
				l.fail("requeue %s: %v", run.ID, err)
			}
		}
	}
}

// deliverAll delivers every message that has arrived.
func (l *life) deliverAll() {
	letters := l.mail.sorted()
	for range letters {
		if letters = l.mail.sorted(); len(letters) == 0 || letters[0].arrives.After(l.clock.Now()) {
			return
		}
		v := &visit{p: l.observer, outcome: outcome{kind: succeeds}, letter: l.mail.take(0)}
		if l.chance("fails in the end", 8) { // so that what is called fails, and nodes undo
			v.outcome.kind = failsFinal
		}
		l.avoidShortWait(v.letter.wakeup.RunID)
		v.p.prepare(v)
		v.result, v.err = v.p.rt.ExecuteDelivery(l.ctx, v.letter.wakeup, nil)
		v.p.prepare(nil)
		switch runlane.CodeOf(v.err) {
		case "", runlane.ErrTaskNotFound:
		default:
			l.fail("delivery of %s: %v", v.letter.wakeup.RunID, v.err)
		}
	}
}

// account says the outcome of every run.
func (l *life) account(leave bool) {
	l.checkStorage(true)
	dead := l.deadLetters()
	for _, run := range l.book.runs() {
		l.lookAt(run.ID)
		l.tally.add("ended", string(run.Status), 1)
		if run.Status.Terminal() {
			continue
		}
		got := l.explain(run)
		l.tally.add("waits", string(got.Wait), 1)
		switch {
		case got.Wait == core.WaitOperator && !dead[run.ID]:
			l.fail("run %s waits for an operator, and is no dead letter: %+v", run.ID, got)
		case taskOf(run.TaskID).strange, got.Wait == core.WaitOperator && leave:
		default:
			l.fail("run %s, which is %s, does not end: %+v", run.ID, run.Status, got)
		}
	}
	l.compareList()
}

func (l *life) deadLetters() map[runlane.RunID]bool {
	dead, q := map[runlane.RunID]bool{}, &lane.DeadLetterQuery{}
	q.Environment, q.Limit = l.world.Environment, runlane.MaxPageLimit
	for {
		page, err := l.truth.ListDeadLetters(l.ctx, q)
		if err != nil {
			l.fail("dead letters: %v", err)
		}
		for _, letter := range page.Items {
			dead[letter.RunID] = true
		}
		if q.After = page.Next; q.After == "" {
			return dead
		}
	}
}

// compareList asks the list for exactly the runs that are known.
func (l *life) compareList() {
	listed := map[runlane.RunID]bool{}
	for run, err := range l.observer.rt.Runs().All(l.ctx, nil) {
		if err != nil || listed[run.ID] {
			l.fail("the list has %s, twice: %t, %v", run.ID, listed[run.ID], err)
		}
		listed[run.ID] = true
	}
	known := l.book.runs()
	for _, run := range known {
		if !listed[run.ID] {
			l.fail("run %s is in no list", run.ID)
		}
	}
	if len(listed) != len(known) {
		l.fail("the list has %d runs, and %d were made: %v", len(listed), len(known), listed)
	}
}
