package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// Reasons of the runtime's own cancellations.
const (
	reasonUnmet      = "the runs before it did not end as its condition wants"
	reasonFlowClosed = "the flow was cancelled"
	reasonIncomplete = "the start of the flow was not finished"
)

// Notify notifies the dependents of a node's end. It keeps no counts: every call looks at all predecessors after its own
// run has ended, so at least one call sees the last end, and the dependent's sequence decides between several.
func (all *Flows) Notify(ctx context.Context, run *runlane.Run) error {
	f, err := all.Read(ctx, run.Source.FlowID)
	if errors.Is(err, runlane.ErrFlowNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	i, known := f.place[run.Source.Node]
	if !known || f.runID(i) != run.ID || !f.record.CreatedAt.Equal(run.Source.CreatedAt) {
		return nil // from an earlier round or flow
	}
	f.remember(i, run)
	dependents := f.dependents[i]
	over := make([]bool, len(dependents))
	held, err := f.held(ctx, dependents)
	if err != nil {
		return err
	}
	err = inParallel(len(dependents), func(n int) (err error) {
		if !held[dependents[n]] {
			over[n], err = f.judge(ctx, dependents[n])
		}
		return err
	})
	if err == nil && !slices.Contains(over, false) {
		err = f.finish(ctx)
	}
	return err
}

// judge resumes or cancels a node once all of its predecessors have ended. ended reports whether its run had already
// ended; it is false if a predecessor has not ended.
func (f *Flow) judge(ctx context.Context, i int) (ended bool, err error) {
	before, all, err := f.allEnded(ctx, f.plan.Nodes[i].After)
	if err != nil || !all {
		return false, err
	}
	for range changeRounds {
		runs, err := f.read(ctx, []int{i})
		if err != nil {
			return false, err
		}
		run := runs[i]
		switch {
		case run == nil:
			return f.record.Closed > 0, nil // never made
		case run.Status.Terminal():
			return true, nil
		case !run.Waiting.Has(runlane.WaitingEnds):
			return false, nil // already resumed
		}
		err = f.decide(ctx, run, i, before)
		if !fail.IsConflict(err, runlane.ConflictEventSequence) {
			return false, err
		}
	}
	conflict := runlane.NewConflict(
		runlane.ConflictEventSequence, fmt.Sprintf("the run changed during each of %d tries", changeRounds))
	conflict.RunID, conflict.Hint = f.runID(i), "call again"
	return false, conflict
}

func (f *Flow) decide(ctx context.Context, run *runlane.Run, i int, before map[int]*runlane.Run) error {
	switch {
	case !f.survivesCancel(i) && f.record.Closed > 0:
		return f.all.Host.CancelWaiting(ctx, run, reasonFlowClosed)
	case !f.conditionMet(i, before):
		return f.all.Host.CancelWaiting(ctx, run, reasonUnmet)
	default:
		return f.all.Host.Resume(ctx, run, &runlane.RunResumed{By: runlane.WaitingEnds, Name: string(f.record.ID)})
	}
}

// conditionMet reports whether the ends match the node's condition. A run that was never made has not begun.
func (f *Flow) conditionMet(i int, before map[int]*runlane.Run) bool {
	switch f.plan.Nodes[i].If {
	case runlane.Always:
		return true
	case runlane.IfFailed:
		owed := f.plan.Nodes[i].Owed
		for _, after := range f.plan.Nodes[i].After {
			switch run := before[after]; {
			case run == nil && owed:
				return true
			case run != nil && run.Status != runlane.StatusSucceeded && (owed || run.Counters.Attempts > 0):
				return true
			}
		}
		return false
	default:
		for _, after := range f.plan.Nodes[i].After {
			if run := before[after]; run == nil || run.Status != runlane.StatusSucceeded {
				return false
			}
		}
		return true
	}
}

// survivesCancel reports whether a node still goes by its condition after a plain cancellation of the flow.
func (f *Flow) survivesCancel(i int) bool {
	return f.plan.Nodes[i].If != runlane.IfSucceeded && f.record.Closed < 2
}

// read reads the latest runs of nodes, without payloads, by node. Missing runs, and runs of another origin, are
// omitted.
func (f *Flow) read(ctx context.Context, places []int) (map[int]*runlane.Run, error) {
	runs := make(map[int]*runlane.Run, len(places))
	for chunk := range slices.Chunk(places, readChunk) {
		at := make(map[runlane.RunID]int, len(chunk))
		ids := make([]runlane.RunID, len(chunk))
		for n, i := range chunk {
			ids[n] = f.runID(i)
			at[ids[n]] = i
		}
		found, err := f.all.Host.Storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: f.all.Environment, IDs: ids, WithoutPayload: true,
		})
		if err != nil {
			return nil, err
		}
		for _, run := range found {
			if i := at[run.ID]; origin.Same(run.Source, f.source(i, f.plan.Nodes[i].Round)) {
				runs[i] = run
				f.remember(i, run)
			}
		}
		for id, i := range at {
			if n := &f.plan.Nodes[i]; runs[i] == nil && n.End != "" {
				runs[i] = &runlane.Run{ID: id, TaskID: n.Task, Status: n.End}
				f.remember(i, runs[i])
			}
		}
	}
	return runs, nil
}

// firstLook is how many runs are read first to check that all have ended; each next read doubles it.
const firstLook = 4

// allEnded returns the runs of nodes if all of them have ended. To find an unended run early, it first reads the one
// that was open last time, and skips runs known to have ended. Missing runs of a closed flow count as ended.
func (f *Flow) allEnded(ctx context.Context, places []int) (runs map[int]*runlane.Run, all bool, err error) {
	if open := f.firstOpen(places); open >= 0 {
		held, err := f.stillOpen(ctx, []int{open})
		if err != nil || held[open] {
			return nil, false, err
		}
	}
	runs = make(map[int]*runlane.Run, len(places))
	left := f.unread(places)
	for look := firstLook; len(left) > 0; look *= 2 {
		chunk := left[:min(look, len(left))]
		left = left[len(chunk):]
		held, err := f.stillOpen(ctx, chunk)
		if err != nil || len(held) > 0 {
			return nil, false, err
		}
	}
	f.addEnded(places, runs)
	return runs, true, nil
}

// stillOpen reads runs of nodes and returns the ones that have not ended.
func (f *Flow) stillOpen(ctx context.Context, places []int) (open map[int]bool, err error) {
	found, err := f.read(ctx, places)
	if err != nil {
		return nil, err
	}
	open = map[int]bool{}
	for _, i := range places {
		if run := found[i]; run == nil && f.record.Closed == 0 || run != nil && !run.Status.Terminal() {
			open[i] = true
		}
	}
	return open, nil
}

// held returns the nodes with a predecessor that was open at its last read and still is. Shared predecessors are read
// once.
func (f *Flow) held(ctx context.Context, nodes []int) (held map[int]bool, err error) {
	of, places := map[int]int{}, []int(nil)
	for _, i := range nodes {
		if open := f.firstOpen(f.plan.Nodes[i].After); open >= 0 {
			if of[i] = open; !slices.Contains(places, open) {
				places = append(places, open)
			}
		}
	}
	held = map[int]bool{}
	if len(places) == 0 {
		return held, nil
	}
	open, err := f.stillOpen(ctx, places)
	for i, place := range of {
		held[i] = open[place]
	}
	return held, err
}

// finish records the end of the flow once all of its runs have ended.
func (f *Flow) finish(ctx context.Context) error {
	runs, all, err := f.allEnded(ctx, f.allNodes())
	if err != nil || !all {
		return err
	}
	_, err = f.change(ctx, func(record *lane.FlowRecord) bool {
		record.TendAt, record.FinishedAt = time.Time{}, f.all.Host.Now()
		record.Status = f.deriveStatus(runs)
		return true
	})
	f.all.Host.Ended(f.record.ID)
	return err
}

func (f *Flow) allNodes() []int {
	places := make([]int, len(f.plan.Nodes))
	for i := range places {
		places[i] = i
	}
	return places
}

// sweep cancels the runs of a closed flow. It then judges the nodes that go by their conditions, because missing runs
// notify nobody.
func (f *Flow) sweep(ctx context.Context, by By) error {
	runs, err := f.read(ctx, f.allNodes())
	if err != nil {
		return err
	}
	err = inParallel(len(f.plan.Nodes), func(i int) error {
		if runs[i] == nil || runs[i].Status.Terminal() || f.survivesCancel(i) {
			return nil
		}
		return f.all.Host.Cancel(ctx, by, runs[i].ID)
	})
	if err != nil {
		return err
	}
	err = inParallel(len(f.plan.Nodes), func(i int) error {
		if runs[i] == nil || !f.survivesCancel(i) {
			return nil
		}
		_, err := f.judge(ctx, i)
		return err
	})
	if err == nil {
		err = f.finish(ctx)
	}
	return err
}

// swept records that every node of the closed flow was cancelled or judged.
func (f *Flow) swept(ctx context.Context) error {
	closed := f.record.Closed
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		swept := record.Closed == closed && !record.TendAt.IsZero()
		record.TendAt = time.Time{}
		return swept
	})
	return err
}

// Tend finishes the work of a maker or canceller that stopped.
func (all *Flows) Tend(ctx context.Context, id runlane.FlowID) (done bool, err error) {
	f, err := all.Read(ctx, id)
	if errors.Is(err, runlane.ErrFlowNotFound) {
		return false, nil
	}
	if err != nil || !f.record.Tended(all.Host.Now().Add(time.Millisecond)) || f.record.Finished() {
		return false, err
	}
	reason := reasonFlowClosed
	if f.record.Closed == 0 {
		runs, err := f.read(ctx, f.allNodes())
		if err != nil {
			return false, err
		}
		if len(runs) == len(f.plan.Nodes) {
			return true, f.complete(ctx)
		}
		reason = reasonIncomplete
		closed, err := f.change(ctx, func(record *lane.FlowRecord) bool {
			late := record.Closed == 0 && !record.TendAt.IsZero() // and not completed since the read
			record.Closed, record.TendAt = 1, all.Host.Now()
			return late
		})
		if err != nil || !closed {
			return false, err
		}
	}
	if err := f.sweep(ctx, By{Actor: runlane.SystemActor, Reason: reason}); err != nil {
		return false, err
	}
	return true, f.swept(ctx)
}

// settle judges all waiting nodes and finishes the flow if none is left.
func (f *Flow) settle(ctx context.Context) error {
	if f.record.Finished() {
		return nil
	}
	runs, err := f.read(ctx, f.allNodes())
	if err != nil {
		return err
	}
	err = inParallel(len(f.plan.Nodes), func(i int) error {
		if run := runs[i]; run == nil || !run.Waiting.Has(runlane.WaitingEnds) {
			return nil
		}
		_, err := f.judge(ctx, i)
		return err
	})
	if err != nil {
		return err
	}
	return f.finish(ctx)
}
