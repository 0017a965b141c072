package waiting

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// World is the process that prepares a scenario, and takes over from the one that died.
type World interface {
	// Must ends the test with an error that is not nil.
	Must(err error)
	Runtime() *core.Runtime
	Now() time.Time
	// Advance moves the clock of everything in this world.
	Advance(d time.Duration)
	// Trigger triggers a run that must not be lost.
	Trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID
	// Deliver executes what is delivered until there is nothing more; DeliverOnce what there is now.
	Deliver()
	DeliverOnce()
	// Arguments are what the process that dies has to know.
	Arguments() map[string]string
	// Gone says that a run is pruned.
	Gone(id runlane.RunID)
}

// Scenario is one thing that a process does until it dies.
type Scenario struct {
	Name string
	// Options of both processes. nil: as [Prepare] makes them.
	Options func(o *core.Options)
	// Prepare is done by the process that takes over later.
	Prepare func(w World)
	// Act is done by the process that dies. nil: it executes what is delivered.
	Act func(ctx context.Context, rt *core.Runtime, arguments map[string]string) error
	// Repeat is done after two ticks, by the caller of the process that died, which got no answer.
	Repeat func(w World)
	// AtOnce is how many attempts the process that dies may be in the middle of. 0 means one.
	AtOnce int
	// Judge finds faults beside those that every end may have.
	Judge func(e *End)
}

// End is what a scenario led to.
type End struct {
	Runtime *core.Runtime
	Runs    map[runlane.RunID]*runlane.Run
	Fault   func(format string, arguments ...any)
}

// Scenarios are all of them.
func Scenarios() []Scenario {
	return slices.Concat(resumptions(), signals(), remembering(), calls(), flows())
}

// all wants so many runs, every one of which ended so. 0 is any number.
func all(status runlane.Status, count int) func(*End) {
	return func(e *End) {
		for id, run := range e.Runs {
			if run.Status != status {
				e.Fault("%s is %s, not %s", id, run.Status, status)
			}
		}
		if count > 0 && len(e.Runs) != count {
			e.Fault("there are %d runs, not %d", len(e.Runs), count)
		}
	}
}

// delivering is a scenario of one wakeup.
func delivering(name string, call runlane.Call, judge func(*End)) Scenario {
	return Scenario{Name: name, Prepare: func(w World) { w.Trigger(call, nil) }, Judge: judge}
}

// operating is a scenario of one call that may be repeated: a caller that got no answer calls again.
func operating(
	name string, prepare func(w World),
	call func(context.Context, *core.Runtime, map[string]string) error, judge func(*End),
) Scenario {
	return Scenario{
		Name:    name,
		Prepare: prepare,
		Act:     call,
		Judge:   judge,
		Repeat: func(w World) {
			w.Must(call(context.Background(), w.Runtime(), w.Arguments()))
			w.Deliver()
		},
	}
}

func argument(arguments map[string]string) runlane.RunID { return runlane.RunID(arguments["run"]) }

// resumptions make runs due that wait for an hour.
func resumptions() []Scenario {
	later := &runlane.TriggerOptions{Delay: time.Hour}
	resume := func(ctx context.Context, rt *core.Runtime, arguments map[string]string) error {
		_, err := rt.Runs().Resume(ctx, argument(arguments), nil)
		return err
	}
	inLine := operating("resume a run of a bounded queue", func(w World) {
		w.Arguments()["run"] = string(w.Trigger(Lined.With(Act{Name: "a"}), later))
	}, resume, all(runlane.StatusSucceeded, 1))
	inLine.Repeat = func(w World) {
		// A run that was resumed before its caller died waits no more: then the call is refused, and the run has ended.
		err := resume(context.Background(), w.Runtime(), w.Arguments())
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			w.Must(err)
		}
		w.Deliver()
	}
	return []Scenario{inLine, operating("resume all", func(w World) {
		for range 2 {
			w.Trigger(Play.With(Act{Name: "a"}), later)
		}
	}, func(ctx context.Context, rt *core.Runtime, _ map[string]string) error {
		_, err := rt.Runs().ResumeAll(ctx, &core.BulkOptions{AllRuns: true})
		return err
	}, all(runlane.StatusSucceeded, 2))}
}

// signals are sent to a run that waits for it, that is to wait for it, and that needs a slot then.
func signals() []Scenario {
	send := func(ctx context.Context, rt *core.Runtime, arguments map[string]string) error {
		// The same id: it is no fault that the run has ended.
		return rt.Signal(ctx, argument(arguments), approved.With(by), once())
	}
	triggered := func(call runlane.Call, waits bool) func(w World) {
		return func(w World) {
			w.Arguments()["run"] = string(w.Trigger(call, nil))
			if waits {
				w.Deliver()
			}
		}
	}
	asking, one := Act{Name: "a", Do: Asks}, all(runlane.StatusSucceeded, 1)
	answered := triggered(Play.With(Act{Name: "a", Do: Mails}), true)
	heard := delivering("delivery that large bodies answer", runlane.Call{}, one)
	heard.Prepare = func(w World) {
		id := w.Trigger(Play.With(Act{Name: "a", Do: Large}), nil)
		w.Must(w.Runtime().Signal(context.Background(), id, approved.With(largeText()), nil))
		w.Must(w.Runtime().Signal(context.Background(), id, refused.With(Noise(largeBytes)), nil))
	}
	return []Scenario{
		heard,
		operating("signal a waiting run", triggered(Play.With(asking), true), send, one),
		operating("signal a run that is to wait", triggered(Play.With(asking), false), send, one),
		operating("signal a waiting run of a bounded queue", triggered(Lined.With(asking), true), send, one),
		operating("answer a run by its token", func(w World) {
			answered(w)
			keepToken(w, argument(w.Arguments()))
		}, answer, one),
	}
}

func keepToken(w World, id runlane.RunID) {
	token, err := tokenOf(context.Background(), w.Runtime(), id)
	w.Must(err)
	w.Arguments()["token"] = token
}

func answer(ctx context.Context, rt *core.Runtime, arguments map[string]string) error {
	return rt.Answer(ctx, arguments["token"], approved.With(by), nil)
}

// remembering has attempts that are called twice, or again, and find what the first one left.
func remembering() []Scenario {
	answering := delivering("delivery that is answered while it suspends",
		Play.With(Act{Name: "a", Do: Answers}), all(runlane.StatusSucceeded, 1))
	recalling := delivering("delivery that remembers",
		Play.With(Act{Name: "a", Do: Recall}), all(runlane.StatusSucceeded, 1))
	recalling.Options, answering.Options = Hooked, Hooked
	return []Scenario{answering, recalling}
}

// calls have a run that calls others: its attempt dies, the last of them does, a tick tells what they left, and a
// cancellation has to reach them.
func calls() []Scenario {
	caller := delivering("delivery that calls", Play.With(Act{Name: "a", Do: Calls}), all(runlane.StatusSucceeded, 3))
	ending := delivering("delivery of a called run",
		Play.With(Act{Name: "a", Do: Single}), all(runlane.StatusSucceeded, 2))
	triggered := ending.Prepare
	ending.Prepare = func(w World) {
		triggered(w)
		w.DeliverOnce()
	}
	stop := func(ctx context.Context, rt *core.Runtime, arguments map[string]string) error {
		_, err := rt.Runs().Cancel(ctx, argument(arguments), nil)
		return err
	}
	cancelling := operating("cancel a run that has called", func(w World) {
		w.Arguments()["run"] = string(w.Trigger(Play.With(Act{Name: "a", Do: Calling}), nil))
		w.Deliver()
	}, stop, all(runlane.StatusCancelled, 2))
	cancelling.Repeat = func(w World) {
		_ = stop(context.Background(), w.Runtime(), w.Arguments()) // it is over, or it is not
		w.Deliver()
	}
	return []Scenario{caller, ending, cancelling}
}
