package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

// State returns the flow with the current state of its runs.
func (f *Flow) State(ctx context.Context) (*runlane.FlowState, error) {
	runs, err := f.read(ctx, f.allNodes())
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

// Listed returns a flow for lists; nil if it is gone meanwhile.
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

// Finished reports whether the last run of the flow has ended.
func (f *Flow) Finished() bool { return f.record.Finished() }

func (f *Flow) CreatedAt() time.Time { return f.record.CreatedAt }

// Node returns the ID and the origin of a node's latest run.
func (f *Flow) Node(name string) (runlane.RunID, runlane.Source, error) {
	i, known := f.place[name]
	if !known {
		return "", runlane.Source{}, Invalid(f.record.ID, "check the node's name", "has no node %q", name)
	}
	return f.runID(i), f.source(i, f.plan.Nodes[i].Round), nil
}

// shown returns the flow in the form of the API.
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
		s.Status = f.deriveStatus(runs)
	}
	for i := range f.plan.Nodes {
		s.Nodes = append(s.Nodes, f.shownNode(i, runs[i]))
	}
	return s
}

// shownNode returns a node with its latest run, which is nil if not made.
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

// deriveStatus returns the flow's status from its runs: the first matching row of the table in
// docs/internals/contract.md, Flows. Missing runs of a closed flow count as cancelled.
func (f *Flow) deriveStatus(runs map[int]*runlane.Run) runlane.FlowStatus {
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
	case count[runlane.FlowPending] > 0: // all others wait for a notification that is on its way
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

// deriveNode returns the contribution of one run: pending while it waits for others of the flow, or is not made yet.
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

// ReadSizes sets OutputBytes of succeeded nodes.
func (all *Flows) ReadSizes(ctx context.Context, state *runlane.FlowState) error {
	at := map[runlane.RunID]*runlane.NodeState{}
	var ids []runlane.RunID
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Status == runlane.StatusSucceeded {
			at[n.RunID], ids = n, append(ids, n.RunID)
		}
	}
	for chunk := range slices.Chunk(ids, readChunk) {
		runs, err := all.Host.Storage().GetRuns(apart.Leave(ctx), &lane.RunsQuery{Environment: all.Environment, IDs: chunk})
		if err != nil {
			return err
		}
		for _, run := range runs {
			if run.OutputError() == nil {
				at[run.ID].OutputBytes = len(run.Output)
			}
			if s := run.Sealed; s != nil && s.OutputApart.Bytes > 0 {
				at[run.ID].OutputBytes = int(s.OutputApart.Bytes)
			}
		}
	}
	return nil
}
