// Package flow keeps flows: graphs, consequences of a node's end, cancellations and retries. Package core makes and
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

// Host is the runtime's side of flows.
type Host interface {
	Now() time.Time
	Storage() lane.Storage
	// Check refuses a call that cannot become a node.
	Check(call runlane.Call, options *runlane.TriggerOptions) error
	// Make makes the run of a node from its call, once.
	Make(ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, n *Node) error
	// CheckRepeat refuses a run that cannot be repeated.
	CheckRepeat(by By, old *runlane.Run) error
	// Repeat makes a run of a node from an earlier one, once.
	Repeat(ctx context.Context, by By, old *runlane.Run, n *Node) error
	// Resume resumes a waiting run. If it changed since the read: runlane.ConflictEventSequence.
	Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error
	// CancelWaiting cancels a waiting run. If it changed since the read: runlane.ConflictEventSequence.
	CancelWaiting(ctx context.Context, run *runlane.Run, reason string) error
	// Cancel cancels a run in any state. A run that has ended or is gone is not an error.
	Cancel(ctx context.Context, by By, id runlane.RunID) error
	// Ended wakes callers in this process that wait for the end of a flow.
	Ended(id runlane.FlowID)
}

// By is the actor of a change and the reason.
type By struct {
	Actor  runlane.Actor
	Reason string
}

// Node is a run's part in its flow.
type Node struct {
	RunID  runlane.RunID
	Check  lane.FlowCheck
	Source runlane.Source
	Waits  int // number of ends of other nodes to wait for
}

// Flows manages the flows of one runtime.
type Flows struct {
	Host        Host
	Environment runlane.Environment
	Logger      *slog.Logger
	Coded       bool // payloads are encoded; keep no hash that would confirm a guess

	graphs graphs
}

const (
	// changeRounds bounds how often a change is repeated after another process changed the flow or run first.
	changeRounds = 5
	readChunk    = 100
	parallel     = 8
)

// inParallel calls do n times, up to parallel at once, and returns the first error.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
