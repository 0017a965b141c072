// Package flow keeps flows: their graphs, what a node's end leads to, cancellations and retries. Package core makes and
// changes the runs.
package flow

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Host is what flows need of the runtime.
type Host interface {
	// Now is the time as storages keep it.
	Now() time.Time
	// Storage is the one on which the runtime works.
	Storage() lane.Storage
	// Check refuses a call of which no node can be made.
	Check(call runlane.Call, options *runlane.TriggerOptions) error
	// Make makes the run of a node from its call, once.
	Make(ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, n *Node) error
	// CheckRepeat refuses a run that cannot be repeated.
	CheckRepeat(by By, old *runlane.Run) error
	// Repeat makes a run of a node from an earlier one, once.
	Repeat(ctx context.Context, by By, old *runlane.Run, n *Node) error
	// Resume lets a run that waits go on. One that changed since it was read is runlane.ConflictEventSequence.
	Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error
	// CancelWaiting cancels a run that waits. One that changed since it was read is runlane.ConflictEventSequence.
	CancelWaiting(ctx context.Context, run *runlane.Run, reason string) error
	// Cancel cancels a run, whatever it does. One that has ended, or is gone, is no error.
	Cancel(ctx context.Context, by By, id runlane.RunID) error
	// Ended wakes those that wait in this process for the end of a flow.
	Ended(id runlane.FlowID)
}

// By is who changes a flow, and why.
type By struct {
	Actor  runlane.Actor
	Reason string
}

// Node is what a run has of its flow.
type Node struct {
	RunID  runlane.RunID
	Check  lane.FlowCheck
	Source runlane.Source
	Waits  int // for how many ends of other nodes
}

// Flows has the flows of one runtime.
type Flows struct {
	Host        Host
	Environment runlane.Environment
	Logger      *slog.Logger
	Coded       bool // payloads are encoded, so that nothing may be kept that confirms a guess of one

	graphs graphs
}

const (
	// changeRounds is how often a change reads the flow, or a run of it, again after another process changed it first.
	changeRounds = 5
	// readChunk is how many runs are read at once.
	readChunk = 100
	// parallel is how many nodes are changed at once.
	parallel = 8
)

// inParallel does n things, some at once, and returns the first error.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
