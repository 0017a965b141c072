package demo

import (
	"context"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Engine is what the demo runs on.
type Engine struct {
	// Name is that of the lane's scheme: "mem", "sqlite" or "aws".
	Name string
	// DeferEvery leaves the wakeup of every n-th run to the relay. 0 means none.
	DeferEvery int
	// Durable says that runs outlive the process, so that the demo can be resumed.
	Durable bool
	// Lane opens a lane. It is called once for each process there would be in production.
	Lane func(ctx context.Context) (*lane.Lane, error)
	// LookAt is the lane's name for those who want to look at the runs afterwards; "" where that is not simple.
	LookAt string
	// Patience is how long nothing at all may happen before the demo gives up.
	Patience time.Duration
	// PollEvery is how often the demo looks at runs that may have ended, and SweepEvery at all that have not.
	PollEvery, SweepEvery time.Duration
	// Separate says that each role has a separate lane, on shared storage. Otherwise the application's runtime does
	// everything.
	Separate bool
	// Work executes runs until ctx ends, then returns nil.
	Work func(ctx context.Context, w *Workplace) error
}

// Workplace is what workers find.
type Workplace struct {
	// Application is the runtime that triggers. It may work, too, but is not the workers' to close.
	Application *core.Runtime
	// Log is the demo's.
	Log *slog.Logger
	// Resume says that a process before this one left work, perhaps under leases.
	Resume bool
	// Open opens a runtime with the demo's tasks, in its environment, on a separate lane. The caller closes it.
	Open func(ctx context.Context, role Role) (*core.Runtime, error)
}

// Role is a part that a process plays. The meter counts each on its own.
type Role string

// The roles, in the order of a run's life.
const (
	Application Role = "application" // triggers
	Relay       Role = "relay"       // publishes what was deferred
	Bridge      Role = "bridge"      // executes
	Tick        Role = "tick"        // maintenance
	observer    Role = "observer"    // the demo itself looks at its runs; not counted
)

// InMemory is one process on a lane in its memory.
func InMemory(open func(context.Context) (*lane.Lane, error)) Engine {
	return inProcess("mem", open, &core.WorkOptions{})
}

// OnFile is one process on a lane in a file that outlives it. What a process that was killed had is free when its
// leases are over, so they are short.
func OnFile(name string, open func(context.Context) (*lane.Lane, error)) Engine {
	e := inProcess("sqlite", open, &core.WorkOptions{Lease: core.MinLease, DrainWait: core.MinLease})
	e.Durable, e.LookAt = true, name
	return e
}

// inProcess is one process that executes what it triggers.
func inProcess(name string, open func(context.Context) (*lane.Lane, error), options *core.WorkOptions) Engine {
	options.Concurrency, options.Grace = 16, 5*time.Second
	return Engine{
		Name:      name,
		Lane:      open,
		Patience:  30 * time.Second,
		PollEvery: 20 * time.Millisecond, SweepEvery: time.Second,
		Work: func(ctx context.Context, w *Workplace) error {
			if w.Resume { // a drain waits neither for the wakeups that the killed process had nor for the next tick
				left := *options
				left.Drain = true
				if err := w.Application.Work(ctx, &left); err != nil {
					return err
				}
			}
			return w.Application.Work(ctx, options)
		},
	}
}
