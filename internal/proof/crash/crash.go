// Package crash is for tests of what a lost process or a lost power leaves: one list of scenarios for the lanes, the
// program whose processes live and die in them, and the judgement of what is left. A lane says in a [Lane] how its
// processes open it and execute what is delivered.
//
// Where the product has effects is not marked (docs/internals/design.md, Proof): a lane names each of them by the functions
// on the stack. A first child of each scenario says what effects it has; then another child is killed in every moment
// between two of them, and the process that takes over has to bring every run to its end.
package crash

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Scenario is one thing that a process does until it dies.
type Scenario struct {
	Name string
	// Options changes those of both processes.
	Options func(p *Process, o *core.Options)
	// Prepare is done by the process that takes over later.
	Prepare func(p *Process)
	// Act is done by the process that dies. nil: it executes what is delivered.
	Act func(ctx context.Context, p *Process) error
	// Repeat is done after two ticks, by the caller of the process that died, which got no answer.
	Repeat func(p *Process)
	// AtOnce is how many attempts the process that dies may be in the middle of, where it is more than a lane's
	// processes have at a time.
	AtOnce int
	// Waits: the runs wait for what comes from outside.
	Waits bool
	// Slow: it takes seconds of real time.
	Slow bool
	// Judge finds faults beside those that every end may have.
	Judge func(e *End)
}

// End is what a scenario led to.
type End struct {
	*Process

	Runs    map[runlane.RunID]*runlane.Run
	Entries map[Effect]int // side effects
	Lost    int            // runs that never end
}

// Scenarios are those of all lanes.
func Scenarios() []Scenario {
	waits := slices.Concat(resumptions(), signals(), remembering(), calls(), flows(), []Scenario{importing()})
	for i := range waits {
		waits[i].Waits = true
	}
	return slices.Concat(triggers(), deliveries(), ticks(), schedules(), changes(), waits)
}

// All wants so many runs, every one of which ended so. 0 is any number.
func All(status runlane.Status, count int) func(*End) {
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

// Succeed wants every run to have succeeded.
func Succeed(e *End) { All(runlane.StatusSucceeded, 0)(e) }

// within wants runs to have succeeded in so many attempts at most.
func within(most int) func(*End) {
	return func(e *End) {
		Succeed(e)
		for id, run := range e.Runs {
			if run.Counters.Attempts > most {
				e.Fault("%s had %d attempts", id, run.Counters.Attempts)
			}
		}
	}
}

// Triggering is a scenario of one call.
func Triggering(name string, call runlane.Call, options *runlane.TriggerOptions) Scenario {
	return Scenario{Name: name, Judge: within(1), Act: func(_ context.Context, p *Process) error {
		p.Trigger(call, options)
		return nil
	}}
}

// Delivering is a scenario of runs that are triggered first. Whatever the process dies of, they succeed in the end.
func Delivering(name string, calls ...runlane.Call) Scenario {
	return Scenario{Name: name, Judge: within(3), Prepare: func(p *Process) {
		for _, call := range calls {
			p.Trigger(call, nil)
		}
	}}
}

// Ticking is a scenario of one tick.
func Ticking(name string, prepare func(p *Process)) Scenario {
	return Scenario{Name: name, Act: tick, Judge: Succeed, Prepare: func(p *Process) {
		p.Tick() // for the catalog of tasks
		prepare(p)
	}}
}

func tick(ctx context.Context, p *Process) error { return p.Lane.Tick(ctx, p) }

// operating is a scenario of one call that may be repeated: a caller that got no answer calls again.
func operating(
	name string, prepare func(p *Process), call func(context.Context, *Process) error, judge func(*End),
) Scenario {
	return Scenario{Name: name, Prepare: prepare, Act: call, Judge: judge, Repeat: func(p *Process) {
		p.Must(call(context.Background(), p))
		p.Deliver()
	}}
}

// triggered has one run, which the arguments name.
func triggered(call runlane.Call, options *runlane.TriggerOptions) func(p *Process) {
	return func(p *Process) { p.Arguments["run"] = string(p.Trigger(call, options)) }
}

// delivered is triggered whose attempts have gone as far as they can.
func delivered(call runlane.Call) func(p *Process) {
	return func(p *Process) {
		triggered(call, nil)(p)
		p.Deliver()
	}
}

// SlotIsFree proves that the bounded queue's only slot can be taken.
func SlotIsFree(p *Process) { p.fresh(Lined.With(Act{}), nil) }

// fails makes the first abandoned attempt of a run its last.
func fails(_ *Process, o *core.Options) { o.MaxAbandoned = 1 }

func everything() *core.BulkOptions { return &core.BulkOptions{AllRuns: true} }

// keyed are the keys of a run that owns two.
func keyed() *runlane.TriggerOptions {
	return &runlane.TriggerOptions{IdempotencyKey: "order", SingletonKey: "customer"}
}

// Between is more than everything that a dead process leaves ends after: leases, reservations, claims, visibility.
const Between = 130 * time.Second
