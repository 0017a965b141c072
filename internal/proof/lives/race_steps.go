package lives

import (
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// act is a call that is drawn, made and judged one after the other, so that two can be made at the same time.
type act struct{ do, judge func() }

// stepAtOnce lets both processes act at the same time, half of the time about the same run. Which is faster is not
// drawn: a life
// that fails here may take several tries to fail again.
func (l *life) stepAtOnce() bool {
	var about *runlane.Run
	if l.chance("the same", 2) {
		now := l.clock.Now()
		about = l.someRun(func(run *runlane.Run) bool { return run.Status.Active() && !run.RunAt.After(now) })
	}
	var acts []*act
	for _, p := range l.processes {
		a := l.drawAct(p, about)
		if a == nil {
			return false
		}
		acts = append(acts, a)
	}
	var acting sync.WaitGroup
	for _, a := range acts {
		acting.Go(a.do)
	}
	acting.Wait()
	for _, a := range acts {
		a.judge()
	}
	return true
}

// drawAct draws what a process does. It is nil when there is nothing that it could do.
func (l *life) drawAct(p *process, about *runlane.Run) *act {
	switch l.below("act", 5) {
	case 0:
		return l.drawTick(p)
	case 4:
		// the other may end the run meanwhile, make it, or send the signal's id with another body
		return l.drawSending(p, runlane.ErrRunEnded, runlane.ErrRunNotFound, runlane.ErrStorageConflict)
	case 1:
		if about == nil {
			return l.drawTrigger(p)
		}
		return l.drawCancel(p, about)
	default:
		if about == nil {
			return l.drawTrigger(p)
		}
		return l.drawDelivery(p, about)
	}
}

func (l *life) drawTick(p *process) *act {
	l.note("  %s: tick", p.name)
	var err error
	return &act{
		do:    func() { _, err = p.rt.Tick(l.ctx, &core.TickOptions{Limit: 100}) },
		judge: func() { l.allows(p, "tick", err) },
	}
}

func (l *life) drawCancel(p *process, run *runlane.Run) *act {
	l.note("  %s: cancel %s", p.name, run.ID)
	var err error
	return &act{
		do:    func() { _, err = p.rt.Runs().Cancel(l.ctx, run.ID, nil) },
		judge: func() { l.allows(p, "cancel", err, runlane.ErrValidationFailed) },
	}
}

func (l *life) drawTrigger(p *process) *act {
	if len(l.book.runs()) >= mostRuns {
		return nil
	}
	t, load, o := l.drawCall(l.habit.tasks)
	l.note("%s", told(p, t, load, &o))
	var result *runlane.TriggerResult
	var err error
	return &act{
		do: func() { result, err = p.rt.Trigger(l.ctx, p.tasks[t.id].With(load), &o) },
		judge: func() {
			l.allows(p, "trigger", err, refusals(&o)...)
			l.answered(p, result, err)
		},
	}
}

func (l *life) drawDelivery(p *process, run *runlane.Run) *act {
	v := l.drawVisit(p)
	options := &core.DeliveryOptions{}
	l.drawDeadline(options)
	l.note("  %s: deliver %s: %s", p.name, run.ID, v.outcome.kind)
	wakeup := lane.Wakeup{RunKey: lane.RunKey{Environment: l.world.Environment, RunID: run.ID}, Queue: run.Queue}
	return &act{
		do: func() {
			p.prepare(v)
			v.result, v.err = p.rt.ExecuteDelivery(l.ctx, wakeup, options)
			p.prepare(nil)
		},
		judge: func() { l.judge(v) },
	}
}
