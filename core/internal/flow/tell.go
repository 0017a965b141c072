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

// Reasons of cancellations that the runtime decides on.
const (
	reasonUnmet      = "the runs before it did not end as its condition wants"
	reasonFlowClosed = "the flow was cancelled"
	reasonIncomplete = "the start of the flow was not finished"
)

// Tell tells the end of a node to those that go after it. Nothing is counted: who tells looks at all ends after its
// own, so the last of them is seen by one teller at least, and the sequence of the dependent decides between several.
func (all *Flows) Tell(ctx context.Context, run *runlane.Run) error {
	f, err := all.Read(ctx, run.Source.FlowID)
	if errors.Is(err, runlane.ErrFlowNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	i, known := f.place[run.Source.Node]
	if !known || f.runID(i) != run.ID || !f.record.CreatedAt.Equal(run.Source.CreatedAt) {
		return nil // of an earlier round, or an earlier flow
	}
	f.saw(i, run)
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

// judge lets a node go on, or cancels it, once all that it goes after has ended. ended says that it had ended before;
// of one that goes after what has not ended it says nothing.
func (f *Flow) judge(ctx context.Context, i int) (ended bool, err error) {
	before, all, err := f.ended(ctx, f.plan.Nodes[i].After)
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
			return false, nil // it goes on already
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

// decide is what the ends before a node lead to.
func (f *Flow) decide(ctx context.Context, run *runlane.Run, i int, before map[int]*runlane.Run) error {
	switch {
	case !f.spared(i) && f.record.Closed > 0:
		return f.all.Host.CancelWaiting(ctx, run, reasonFlowClosed)
	case !f.met(i, before):
		return f.all.Host.CancelWaiting(ctx, run, reasonUnmet)
	default:
		return f.all.Host.Resume(ctx, run, &runlane.RunResumed{By: runlane.WaitingEnds, Name: string(f.record.ID)})
	}
}

// met reports that the ends are what the node's condition wants. A run that was never made has not begun.
func (f *Flow) met(i int, before map[int]*runlane.Run) bool {
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

// spared reports a node that goes on by its condition although the flow was cancelled, once.
func (f *Flow) spared(i int) bool {
	return f.plan.Nodes[i].If != runlane.IfSucceeded && f.record.Closed < 2
}

// read reads the latest runs of nodes, without payloads, by place. Missing ones are left out, and
// runs of another origin.
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
				f.saw(i, run)
			}
		}
		for id, i := range at {
			if n := &f.plan.Nodes[i]; runs[i] == nil && n.End != "" {
				runs[i] = &runlane.Run{ID: id, TaskID: n.Task, Status: n.End}
				f.saw(i, runs[i])
			}
		}
	}
	return runs, nil
}

// firstLook is how many runs are read first where all have to have ended; then twice as many.
const firstLook = 4

// ended returns the runs of nodes where all of them have ended. It reads no more than it takes to find one that has
// not, and none that is known to have ended: first the one that had not when it was read last. What a closed flow
// misses has ended.
func (f *Flow) ended(ctx context.Context, places []int) (runs map[int]*runlane.Run, all bool, err error) {
	if open := f.openedOf(places); open >= 0 {
		held, err := f.stillOpen(ctx, []int{open})
		if err != nil || held[open] {
			return nil, false, err
		}
	}
	runs = make(map[int]*runlane.Run, len(places))
	left := f.unknown(places)
	for look := firstLook; len(left) > 0; look *= 2 {
		chunk := left[:min(look, len(left))]
		left = left[len(chunk):]
		held, err := f.stillOpen(ctx, chunk)
		if err != nil || len(held) > 0 {
			return nil, false, err
		}
	}
	f.known(places, runs)
	return runs, true, nil
}

// stillOpen reads runs of nodes, and returns those that have not ended.
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

// held are those among nodes that go after one which had not ended when it was read last, and has not now. What several
// of them go after is read once.
func (f *Flow) held(ctx context.Context, nodes []int) (held map[int]bool, err error) {
	of, places := map[int]int{}, []int(nil)
	for _, i := range nodes {
		if open := f.openedOf(f.plan.Nodes[i].After); open >= 0 {
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

// finish records that every run of the flow has ended, if that is so.
func (f *Flow) finish(ctx context.Context) error {
	runs, all, err := f.ended(ctx, f.every())
	if err != nil || !all {
		return err
	}
	_, err = f.change(ctx, func(record *lane.FlowRecord) bool {
		record.TendAt, record.FinishedAt = time.Time{}, f.all.Host.Now()
		record.Status = f.derive(runs)
		return true
	})
	f.all.Host.Ended(f.record.ID)
	return err
}

// every is the places of all nodes.
func (f *Flow) every() []int {
	places := make([]int, len(f.plan.Nodes))
	for i := range places {
		places[i] = i
	}
	return places
}

// sweep asks the nodes of a closed flow to end, judges those that go on by their conditions, as what was never made
// tells no one.
func (f *Flow) sweep(ctx context.Context, by By) error {
	runs, err := f.read(ctx, f.every())
	if err != nil {
		return err
	}
	err = inParallel(len(f.plan.Nodes), func(i int) error {
		if runs[i] == nil || runs[i].Status.Terminal() || f.spared(i) {
			return nil
		}
		return f.all.Host.Cancel(ctx, by, runs[i].ID)
	})
	if err != nil {
		return err
	}
	err = inParallel(len(f.plan.Nodes), func(i int) error {
		if runs[i] == nil || !f.spared(i) {
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

// swept records that every node of the closed flow was asked.
func (f *Flow) swept(ctx context.Context) error {
	closed := f.record.Closed
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		swept := record.Closed == closed && !record.TendAt.IsZero()
		record.TendAt = time.Time{}
		return swept
	})
	return err
}

// Tend does to a flow what its maker or its canceller did not come to.
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
		runs, err := f.read(ctx, f.every())
		if err != nil {
			return false, err
		}
		if len(runs) == len(f.plan.Nodes) {
			return true, f.complete(ctx)
		}
		reason = reasonIncomplete
		closed, err := f.change(ctx, func(record *lane.FlowRecord) bool {
			late := record.Closed == 0 && !record.TendAt.IsZero() // and not complete since it was read
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

// settle judges all nodes that wait, and finishes the flow where nothing is left.
func (f *Flow) settle(ctx context.Context) error {
	if f.record.Finished() {
		return nil
	}
	runs, err := f.read(ctx, f.every())
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
