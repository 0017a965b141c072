package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// latestRun returns the run that a retry repeats: the last one made in these rounds.
func (f *Flow) latestRun(ctx context.Context, i int, rounds []int) (*runlane.Run, error) {
	for n := len(rounds) - 1; ; n-- {
		source := f.source(i, rounds[n])
		old, err := f.all.Host.Storage().GetRun(ctx, lane.RunKey{
			Environment: f.all.Environment, RunID: f.runIDOf(i, rounds[n]),
		})
		stranger := err == nil && !origin.Same(old.Source, source)
		switch {
		case n > 0 && (stranger || errors.Is(err, runlane.ErrRunNotFound)):
			continue
		case stranger:
			return nil, origin.Stranger(old, source)
		case errors.Is(err, runlane.ErrRunNotFound): // pruned since the flow was read
			return nil, Invalid(f.record.ID, "start it under another id",
				"has the node %q, whose run is gone", f.plan.Nodes[i].Name)
		case err != nil:
			return nil, err
		}
		return old, nil
	}
}

// checkRepeatable refuses a node without a repeatable run.
func (f *Flow) checkRepeatable(ctx context.Context, by By, i int, rounds []int) error {
	old, err := f.latestRun(ctx, i, rounds)
	if err != nil {
		return err
	}
	return f.all.Host.CheckRepeat(by, old)
}

// repeatRun makes the node's run of this round.
func (f *Flow) repeatRun(ctx context.Context, by By, i int) error {
	old, err := f.latestRun(ctx, i, f.plan.Nodes[i].Before)
	if err != nil {
		return err
	}
	return f.all.Host.Repeat(ctx, by, old, f.node(i))
}

// Retry makes new runs for nodes that did not succeed, or continues a retry that was begun. number selects the retry, 0
// the next.
func (all *Flows) Retry(
	ctx context.Context, f *Flow, by By, number int, nothingUndone bool,
) (*runlane.FlowState, error) {
	begun, err := f.begun(number)
	if err != nil {
		return nil, err
	}
	if !begun {
		if err := f.beginRound(ctx, by, nothingUndone); err != nil {
			return nil, err
		}
	}
	if !f.retrying() {
		return f.State(ctx) // all of its runs exist
	}
	if err := f.createMissingRuns(ctx, begun, func(ctx context.Context, i int) error { return f.repeatRun(ctx, by, i) }); err != nil {
		return nil, err
	}
	return all.state(ctx, f.record.ID)
}

// PlanRetry returns the nodes for which Retry would make new runs, in the order in which they were added.
func (f *Flow) PlanRetry(ctx context.Context, number int, nothingUndone bool) ([]string, error) {
	begun, err := f.begun(number)
	if err != nil {
		return nil, err
	}
	round, plan := f.record.Round, f.plan
	if !begun {
		next, err := f.planRound(ctx, nothingUndone)
		if err != nil {
			return nil, err
		}
		round, plan = round+1, *next
	}
	var names []string
	for i := range plan.Nodes {
		if plan.Nodes[i].Round == round {
			names = append(names, plan.Nodes[i].Name)
		}
	}
	return names, nil
}

// retrying reports whether a retry has begun and some of its runs are missing.
func (f *Flow) retrying() bool {
	return f.record.Round > 0 && !f.record.TendAt.IsZero() && f.record.Closed == 0
}

// begun reports whether the retry with this number has begun. 0 selects the unfinished retry, else the next one.
func (f *Flow) begun(number int) (bool, error) {
	if number > f.record.Round+1 {
		return false, Invalid(f.record.ID, "give the number of its retries plus one",
			"was retried %d times: its next retry is not number %d", f.record.Round, number)
	}
	return number > 0 && number <= f.record.Round || number == 0 && f.retrying(), nil
}

// beginRound begins the next round, after checking that each of its runs can be made, because the write erases the
// flow's end.
func (f *Flow) beginRound(ctx context.Context, by By, nothingUndone bool) error {
	plan, err := f.planRound(ctx, nothingUndone)
	if err != nil {
		return err
	}
	next := *f.record
	err = inParallel(len(plan.Nodes), func(i int) error {
		if plan.Nodes[i].Round != next.Round+1 {
			return nil
		}
		return f.checkRepeatable(ctx, by, i, plan.Nodes[i].Before)
	})
	if err != nil {
		return err
	}
	next.Round, next.Closed, next.Status = next.Round+1, 0, ""
	next.FinishedAt, next.TendAt = time.Time{}, f.all.Host.Now().Add(flowPatience)
	if next.Plan, err = json.Marshal(plan); err != nil {
		return err
	}
	if len(next.Plan) > lane.MaxFlowPlanBytes {
		return Invalid(f.record.ID, "start it under another id", "has a graph of %d bytes with what a retry adds, "+
			"more than %d", len(next.Plan), lane.MaxFlowPlanBytes)
	}
	put, err := f.all.Host.Storage().PutFlow(ctx, &lane.FlowCommand{Environment: f.all.Environment, Flow: next})
	if err == nil {
		f.record, f.graph = put, newGraph(*plan)
	}
	return err
}

func (f *Flow) planRound(ctx context.Context, nothingUndone bool) (*flowPlan, error) {
	if !f.record.Finished() {
		return nil, Invalid(f.record.ID, "cancel it first, or wait for its end", "has not finished")
	}
	if f.record.Round == runlane.MaxFlowRetries {
		return nil, Invalid(f.record.ID, "start it under another id", "was retried %d times", f.record.Round)
	}
	runs, err := f.read(ctx, f.allNodes())
	if err != nil {
		return nil, err
	}
	round, plan := f.record.Round+1, f.plan
	plan.Nodes = slices.Clone(plan.Nodes)
	renewed := 0
	levels := f.levels()
	for _, level := range slices.Backward(levels) {
		for _, i := range level {
			n := &plan.Nodes[i]
			torn := f.record.Closed > 0 && len(n.Before) > 0                             // cancelled while a retry made its runs
			if runs[i] == nil && !torn || runs[i] != nil && runs[i].CreatedAt.IsZero() { // pruned: only its end is known
				return nil, Invalid(f.record.ID, "start it under another id",
					"has the node %q, whose run is gone or was never made", n.Name)
			}
			if f.stays(&plan, round, i, runs) {
				n.End = runs[i].Status
				continue
			}
			n.Owed = f.owesUndo(i, runs)
			n.addRound(round)
			if runs[i] == nil { // the earlier run to repeat may be gone
				if err := f.checkRepeatable(ctx, By{}, i, n.Before); err != nil {
					return nil, err
				}
			}
			renewed++
		}
	}
	if renewed == 0 {
		return nil, Invalid(f.record.ID, "look at its nodes", "has nothing to retry")
	}
	if undone := f.undone(runs); len(undone) > 0 && !nothingUndone {
		return nil, Invalid(f.record.ID,
			"start another flow; if they undid nothing (an alert, for example), pass NothingUndone (--nothing-undone)",
			"was undone by %s, which ran because others failed; a retry does not redo undone work", listNames(undone))
	}
	return &plan, nil
}

// undone names the nodes with IfFailed that succeeded.
func (f *Flow) undone(runs map[int]*runlane.Run) (names []string) {
	for i := range f.plan.Nodes {
		if run := runs[i]; f.plan.Nodes[i].If == runlane.IfFailed && run != nil && run.Status == runlane.StatusSucceeded {
			names = append(names, f.plan.Nodes[i].Name)
		}
	}
	return names
}

func listNames(names []string) string {
	const most = 5
	quoted := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// stays reports whether a retry keeps the node's run.
func (f *Flow) stays(plan *flowPlan, round, i int, runs map[int]*runlane.Run) bool {
	before := map[int]*runlane.Run{}
	for _, after := range plan.Nodes[i].After {
		if plan.Nodes[after].Round == round {
			return false
		}
		before[after] = runs[after]
	}
	return runs[i] != nil && (runs[i].Status == runlane.StatusSucceeded || len(before) > 0 && !f.conditionMet(i, before))
}

// owesUndo reports whether a node with IfFailed must still undo: a predecessor has begun, in this round or before, and
// the node has not succeeded since.
func (f *Flow) owesUndo(i int, runs map[int]*runlane.Run) bool {
	n := &f.plan.Nodes[i]
	if n.If != runlane.IfFailed || runs[i] != nil && runs[i].Status == runlane.StatusSucceeded {
		return false
	}
	return n.Owed || slices.ContainsFunc(n.After, func(after int) bool {
		run := runs[after]
		return run != nil && run.Status != runlane.StatusSucceeded && run.Counters.Attempts > 0
	})
}
