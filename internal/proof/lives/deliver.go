package lives

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func (l *life) drawVisit(p *process) *visit {
	return &visit{p: p, outcome: l.drawOutcome(), after: l.below("after", 4)}
}

// drawDeadline is how much time the process has left; none for a long-lived one.
func (l *life) drawDeadline(o *core.DeliveryOptions) {
	if l.chance("limited", 4) {
		o.Deadline = l.clock.Now().
			Add(pick(l, "left", []time.Duration{
				time.Second, 6 * time.Second, 20 * time.Second, 2 * time.Minute, 15 * time.Minute,
			}))
	}
}

// stepDeliver delivers a message that the transport has; it may come early, twice, or out of order.
func (l *life) stepDeliver() bool {
	letters := l.mail.sorted()
	if len(letters) == 0 {
		return false
	}
	i := l.below("message", len(letters))
	if letters[i].arrives.After(l.clock.Now()) && !l.chance("early", 4) {
		return false
	}
	if !l.chance("twice", 6) {
		l.mail.take(i)
	}
	p := l.process()
	v := l.drawVisit(p)
	v.letter = letters[i]
	l.deliver(v)
	return true
}

// stepStray delivers what was never sent.
func (l *life) stepStray() bool {
	wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: l.world.Environment, RunID: "absent"}}
	if run := l.someRun(func(run *runlane.Run) bool { return run.Status.Active() }); run != nil {
		wakeup.RunID = run.ID
		wakeup.Queue = pick(l, "queue", []runlane.QueueName{"", run.Queue, run.Queue, "elsewhere"})
	}
	v := l.drawVisit(l.process())
	l.note("  %s of queue %q", wakeup.RunID, wakeup.Queue)
	l.execute(v, wakeup)
	return true
}

// deliver executes a letter, and hands it back to the mail where it is not acknowledged.
func (l *life) deliver(v *visit) {
	l.note("  %s, arrives %s", v.letter.wakeup.RunID, v.letter.arrives.Format("15:04:05"))
	l.execute(v, v.letter.wakeup)
	if v.err != nil {
		l.handBack(v)
	}
}

// execute runs a wakeup to its end.
func (l *life) execute(v *visit, wakeup lane.Wakeup) {
	options := &core.DeliveryOptions{}
	l.drawDeadline(options)
	l.note("  %s: %s", v.p.name, v.outcome.kind)
	l.avoidShortWait(wakeup.RunID)
	v.p.prepare(v)
	v.result, v.err = v.p.rt.ExecuteDelivery(l.ctx, wakeup, options)
	v.p.prepare(nil)
	l.judge(v)
}

// avoidShortWait lets the moment come that a delivery would otherwise wait for, by the real clock.
func (l *life) avoidShortWait(id runlane.RunID) {
	for _, run := range l.book.runs() {
		if early := run.RunAt.Sub(l.clock.Now()); run.ID == id && early > 0 && early <= time.Second {
			l.clock.Advance(early)
		}
	}
}

// judge asks whether a delivery may have ended so.
func (l *life) judge(v *visit) {
	l.allows(v.p, "delivery", v.err, runlane.ErrTaskNotFound, runlane.ErrOperationCancelled)
	if v.err != nil || v.p.dead.Load() {
		return
	}
	l.note("  ignored as %q", v.result.Ignored)
	if v.result.Ignored == "" { // an outcome was recorded
		l.book.answers(v.result.Run.ID)
	}
}

func (l *life) stepLose() bool {
	letters := l.mail.sorted()
	if len(letters) == 0 {
		return false
	}
	lost := l.mail.take(l.below("message", len(letters)))
	l.note("  %s", lost.wakeup.RunID)
	return true
}

func (l *life) stepHold() bool {
	letters := l.mail.sorted()
	if len(letters) == 0 {
		return false
	}
	held := l.mail.take(l.below("message", len(letters)))
	held.arrives = held.arrives.Add(
		pick(l, "held up", []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}),
	)
	l.note("  %s until %s", held.wakeup.RunID, held.arrives.Format("15:04:05"))
	l.mail.put(held)
	return true
}

// stepNext lets a worker poll.
func (l *life) stepNext() bool {
	v := l.drawVisit(l.process())
	options := &core.DeliveryOptions{}
	l.drawDeadline(options)
	l.note("  %s: %s", v.p.name, v.outcome.kind)
	v.p.prepare(v)
	v.result, v.err = v.p.rt.ExecuteNext(l.ctx, options)
	v.p.prepare(nil)
	l.allows(v.p, "execute next", v.err, runlane.ErrTaskNotFound, runlane.ErrOperationCancelled)
	return true
}

// stepDrain lets a worker do what is due, whatever there are of wakeups.
func (l *life) stepDrain() bool {
	p := l.process()
	err := p.rt.Work(
		l.ctx,
		&core.WorkOptions{
			Drain:       true,
			DrainWait:   -1,
			NoTick:      true,
			Concurrency: 1 + l.below("concurrency", 2),
			WorkerID:    p.name,
		},
	)
	l.allows(p, "drain", err)
	return true
}

// stepBegin begins an attempt that lasts until another step ends it.
func (l *life) stepBegin() bool {
	now := l.clock.Now()
	run := l.someRun(func(run *runlane.Run) bool {
		return run.Status.Active() && run.Status != runlane.StatusCancellationRequested && !run.RunAt.After(now)
	})
	if run == nil || len(l.flying) >= 3 {
		return false
	}
	ctx, cancel := context.WithCancel(l.ctx)
	v := &visit{
		p:        l.process(),
		after:    l.below("after", 4),
		waits:    true,
		decision: make(chan outcome, 1),
		begun:    make(chan struct{}),
		done:     make(chan struct{}),
		cancel:   cancel,
	}
	options := &core.DeliveryOptions{WorkerID: v.p.name}
	l.drawDeadline(options)
	l.note("  %s: %s", v.p.name, run.ID)
	l.avoidShortWait(run.ID)
	wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: l.world.Environment, RunID: run.ID}, Queue: run.Queue}
	v.p.prepare(v)
	go func() { // ends with the attempt
		defer close(v.done)
		defer cancel()
		v.result, v.err = v.p.rt.ExecuteDelivery(ctx, wakeup, options)
	}()
	select {
	case <-v.begun:
		l.flying = append(l.flying, v)
	case <-v.done:
		v.p.prepare(nil)
		l.judge(v)
	}
	return true
}

func (l *life) drawFlying() *visit {
	if len(l.flying) == 0 {
		return nil
	}
	i := l.below("attempt", len(l.flying))
	v := l.flying[i]
	l.flying = slices.Delete(l.flying, i, i+1)
	return v
}

func (l *life) stepEnd() bool {
	v := l.drawFlying()
	if v == nil {
		return false
	}
	o := l.drawOutcome()
	l.note("  %s: %s", v.p.name, o.kind)
	l.finish(v, o)
	return true
}

// finish lets an attempt return that is not under way any more for the steps to come.
func (l *life) finish(v *visit, o outcome) {
	v.decision <- o // room is for this one
	<-v.done
	l.judge(v)
}

// stepInterrupt stops a delivery in good order.
func (l *life) stepInterrupt() bool {
	v := l.drawFlying()
	if v == nil {
		return false
	}
	l.note("  %s", v.p.name)
	v.cancel()
	l.finish(v, outcome{kind: stops})
	return true
}

// stepKill kills a process, with whatever it has under way.
func (l *life) stepKill() bool {
	p := l.process()
	l.note("  %s", p.name)
	l.tally.fault("process killed")
	p.die()
	return true
}
