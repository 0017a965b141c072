package crash

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

func doing(do string) Act { return Act{Name: "a", Do: do} }

func succeeded(count int) func(*End) { return All(runlane.StatusSucceeded, count) }

// waiting is a scenario of a run whose attempts wait.
func waiting(name, do string, count int) Scenario {
	s := Delivering(name, Play.With(doing(do)))
	s.Judge = succeeded(count)
	return s
}

// resumptions make runs due that wait for an hour.
func resumptions() []Scenario {
	later := &runlane.TriggerOptions{Delay: time.Hour}
	resume := func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Runs().Resume(ctx, p.argument(), nil)
		return err
	}
	one := func(name string, prepare func(*Process)) Scenario {
		s := operating(name, prepare, resume, succeeded(1))
		s.Repeat = func(p *Process) {
			// A run that was resumed before its caller died waits no more: then the call is refused, and the run has ended.
			err := resume(context.Background(), p)
			if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
				p.Must(err)
			}
			p.Deliver()
		}
		return s
	}
	return []Scenario{
		one("resume a run of a bounded queue", triggered(Lined.With(doing("")), later)),
		one("resume a run that sleeps", delivered(Play.With(doing(doSleep)))),
		operating("resume all", func(p *Process) {
			for range 2 {
				p.Trigger(Play.With(doing("")), later)
			}
		}, func(ctx context.Context, p *Process) error {
			_, err := p.Runtime.Runs().ResumeAll(ctx, everything())
			return err
		}, succeeded(2)),
	}
}

// signals are sent to a run that waits for it, that is to wait for it, and that needs a slot then.
func signals() []Scenario {
	send := func(ctx context.Context, p *Process) error {
		// The same id: it is no fault that the run has ended.
		return p.Runtime.Signal(ctx, p.argument(), approved.With(by), once())
	}
	asking := doing(doAsk)
	heard := waiting("delivery that large bodies answer", "", 1)
	heard.Prepare = func(p *Process) {
		id := p.Trigger(Play.With(doing(doHear)), nil)
		p.Must(p.Runtime.Signal(context.Background(), id, approved.With(largeText()), nil))
		p.Must(p.Runtime.Signal(context.Background(), id, refused.With(noise(largeBytes)), nil))
	}
	return []Scenario{
		heard,
		operating("signal a waiting run", delivered(Play.With(asking)), send, succeeded(1)),
		operating("signal a run that is to wait", triggered(Play.With(asking), nil), send, succeeded(1)),
		operating("signal a waiting run of a bounded queue", delivered(Lined.With(asking)), send, succeeded(1)),
		operating("answer a run by its token", func(p *Process) {
			delivered(Play.With(doing(doMail)))(p)
			keepToken(p, p.argument())
		}, answer, succeeded(1)),
	}
}

func keepToken(p *Process, id runlane.RunID) {
	token, err := tokenOf(context.Background(), p.Runtime, id)
	p.Must(err)
	p.Arguments["token"] = token
}

func answer(ctx context.Context, p *Process) error {
	return p.Runtime.Answer(ctx, p.Arguments["token"], approved.With(by), nil)
}

// remembering has attempts that are called twice, or again, and find what the first one left.
func remembering() []Scenario {
	sleeping := waiting("delivery that sleeps", doSleep, 1)
	sleeping.Repeat = func(p *Process) {
		p.Advance(time.Hour)
		p.Tick()
		p.Deliver()
	}
	answering := waiting("delivery that is answered while it suspends", doAnswer, 1)
	recalling := waiting("delivery that remembers", doRecall, 1)
	recalling.Options, answering.Options = hooked, hooked
	return []Scenario{sleeping, answering, recalling}
}

// calls have a run that calls others: its attempt dies, the last of them does, a tick tells what they left, and a
// cancellation has to reach them.
func calls() []Scenario {
	ending := waiting("delivery of a called run", doCallOne, 2)
	begin := ending.Prepare
	ending.Prepare = func(p *Process) {
		begin(p)
		p.DeliverOnce()
	}
	stop := func(ctx context.Context, p *Process) error {
		_, err := p.Runtime.Runs().Cancel(ctx, p.argument(), nil)
		return err
	}
	cancelling := operating("cancel a run that has called", delivered(Play.With(doing(doCallAsking))), stop,
		All(runlane.StatusCancelled, 2))
	cancelling.Repeat = func(p *Process) {
		_ = stop(context.Background(), p) // it is over, or it is not
		p.Deliver()
	}
	return []Scenario{waiting("delivery that calls", doCallTwo, 3), ending, cancelling}
}
