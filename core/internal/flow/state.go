package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// State is the flow with its runs as they are now.
func (f *Flow) State(ctx context.Context) (*runlane.FlowState, error) {
	runs, err := f.read(ctx, f.every())
	if err != nil {
		return nil, err
	}
	return f.shown(runs), nil
}

// state reads a flow and its runs after a change.
func (all *Flows) state(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	f, err := all.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	return f.State(ctx)
}

// Listed is a flow as lists show it; nil for one that is gone meanwhile.
func (all *Flows) Listed(ctx context.Context, record *lane.FlowRecord) (*runlane.FlowState, error) {
	if record.Finished() {
		return (&Flow{all: all, record: record, graph: &graph{}}).shown(nil), nil
	}
	state, err := all.state(ctx, record.ID)
	switch {
	case errors.Is(err, runlane.ErrFlowNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	state.Nodes = nil
	return state, nil
}

// Finished reports that the last run of the flow has ended.
func (f *Flow) Finished() bool { return f.record.Finished() }

// CreatedAt is when the flow was started.
func (f *Flow) CreatedAt() time.Time { return f.record.CreatedAt }

// Node is the id and the origin of a node's latest run.
func (f *Flow) Node(name string) (runlane.RunID, runlane.Source, error) {
	i, known := f.place[name]
	if !known {
		return "", runlane.Source{}, Invalid(f.record.ID, "check the node's name", "has no node %q", name)
	}
	return f.runID(i), f.source(i, f.plan.Nodes[i].Round), nil
}

// shown is the flow in the form of the API.
func (f *Flow) shown(runs map[int]*runlane.Run) *runlane.FlowState {
	s := &runlane.FlowState{
		ID:         f.record.ID,
		Status:     f.record.Status,
		Retries:    f.record.Round,
		Cancelled:  f.record.Closed > 0,
		CreatedAt:  f.record.CreatedAt,
		FinishedAt: f.record.FinishedAt,
	}
	if s.Status == "" {
		s.Status = f.derive(runs)
	}
	for i := range f.plan.Nodes {
		s.Nodes = append(s.Nodes, f.shownNode(i, runs[i]))
	}
	return s
}

// shownNode is a node with its latest run, nil where that is not made.
func (f *Flow) shownNode(i int, run *runlane.Run) runlane.NodeState {
	n := &f.plan.Nodes[i]
	shown := runlane.NodeState{
		Name:    n.Name,
		If:      n.If,
		RunID:   f.runID(i),
		TaskID:  n.Task,
		Retries: n.times(),
	}
	for _, after := range n.After {
		shown.After = append(shown.After, f.plan.Nodes[after].Name)
	}
	if run != nil {
		shown.Status, shown.Waiting, shown.Attempts = run.Status, run.Waiting, run.Counters.Attempts
		shown.Failure = run.Failure
		shown.Failure.Meta = maps.Clone(run.Failure.Meta)
	}
	return shown
}

// derive is the status of a flow whose runs are these, by the table of docs/internals/contract.md, Flows: the first row
// that fits. Missing runs of a closed flow were cancelled before they were made.
func (f *Flow) derive(runs map[int]*runlane.Run) runlane.FlowStatus {
	count := map[runlane.FlowStatus]int{}
	for i := range f.plan.Nodes {
		count[f.deriveNode(runs[i])]++
	}
	switch {
	case len(runs) == 0 && f.record.Closed == 0:
		return runlane.FlowPending
	case count[runlane.FlowActive] > 0:
		return runlane.FlowActive
	case count[runlane.FlowWaiting] > 0:
		return runlane.FlowWaiting
	case count[runlane.FlowPending] > 0: // nothing but runs that wait for others: it is about to be told
		return runlane.FlowActive
	case f.record.Closed > 0:
		return runlane.FlowCancelled
	case count[runlane.FlowFailed] > 0:
		return runlane.FlowFailed
	case count[runlane.FlowCompleted] > 0:
		return runlane.FlowCompleted
	default:
		return runlane.FlowCancelled
	}
}

// deriveNode is what one run contributes: pending while it waits for others of the flow, or is not made yet.
func (f *Flow) deriveNode(run *runlane.Run) runlane.FlowStatus {
	switch {
	case run == nil && f.record.Closed == 0:
		return runlane.FlowPending
	case run == nil || run.Status.End() == runlane.StatusCancelled:
		return runlane.FlowCancelled
	case run.Status.End() == runlane.StatusSucceeded:
		return runlane.FlowCompleted
	case run.Status.End() == runlane.StatusFailed:
		return runlane.FlowFailed
	case run.Waiting.Has(runlane.WaitingEnds):
		return runlane.FlowPending
	case run.Waiting.Has(runlane.WaitingSignal), run.Waiting.Has(runlane.WaitingInput),
		run.Waiting.Has(runlane.WaitingBlocked):
		return runlane.FlowWaiting
	default:
		return runlane.FlowActive
	}
}

// ReadSizes sets OutputBytes of the nodes that have succeeded.
func (all *Flows) ReadSizes(ctx context.Context, state *runlane.FlowState) error {
	at := map[runlane.RunID]*runlane.NodeState{}
	var ids []runlane.RunID
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Status == runlane.StatusSucceeded {
			at[n.RunID], ids = n, append(ids, n.RunID)
		}
	}
	for chunk := range slices.Chunk(ids, readChunk) {
		runs, err := all.Host.Storage().GetRuns(ctx, &lane.RunsQuery{Environment: all.Environment, IDs: chunk})
		if err != nil {
			return err
		}
		for _, run := range runs {
			if run.OutputError() == nil {
				at[run.ID].OutputBytes = len(run.Output)
			}
		}
	}
	return nil
}
