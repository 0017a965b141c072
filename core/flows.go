package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Flows is the operator's view of flows. Stateless: get one with [Runtime.Flows] when you need it.
type Flows struct{ rt *Runtime }

// Flows returns the view.
func (rt *Runtime) Flows() *Flows { return &Flows{rt: rt} }

// FlowListOptions select and page. nil means all.
type FlowListOptions struct {
	// Statuses to list. Empty: all.
	Statuses []runlane.FlowStatus
	// After continues where an earlier page ended.
	After runlane.Cursor
	// Limit bounds the flows that a page looks at, 0 for the default of lists.
	Limit int
}

// Get returns a flow exactly as it is now. Absent: runlane.ErrFlowNotFound.
func (f *Flows) Get(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	read, err := f.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return read.state(ctx)
}

func (f *Flows) read(ctx context.Context, id runlane.FlowID) (*flow, error) {
	if err := firstError(id.Validate(), f.rt.suspends()); err != nil {
		return nil, err
	}
	return f.rt.flow(ctx, id)
}

// Wait returns the flow once its last run has ended, see [Runtime.Wait].
func (f *Flows) Wait(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	var read *flow
	err := f.rt.await(ctx, endOf{flow: id}, func() (over bool, err error) {
		read, err = f.read(ctx, id)
		return err == nil && read.record.Finished(), err
	})
	switch {
	case err == nil:
		return read.state(ctx)
	case ctx.Err() != nil:
		return nil, cancelled(ctx, "")
	default:
		return nil, err
	}
}

// List returns a page of flows without their nodes: those that have not finished by id, then the others, the latest
// first. A page may be short or empty and still have a Next. Lists lag a little behind [Flows.Get].
func (f *Flows) List(
	ctx context.Context, options *FlowListOptions,
) (*runlane.Page[runlane.FlowState], error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	if options == nil {
		options = &FlowListOptions{}
	}
	if err := f.rt.suspends(); err != nil {
		return nil, err
	}
	for _, status := range options.Statuses {
		if !slices.Contains(runlane.FlowStatuses(), status) {
			return nil, invalidInput("see runlane.FlowStatuses", "FlowListOptions.Statuses has %q", status)
		}
	}
	if options.Limit < 0 || options.Limit > runlane.MaxPageLimit {
		return nil, invalidInput("use 0 for the default", "FlowListOptions.Limit is %d, not within 0 and %d",
			options.Limit, runlane.MaxPageLimit)
	}
	scope := fmt.Sprintf("flows %s %s", f.rt.environment, describeList(options.Statuses))
	q := lane.FlowQuery{PageQuery: lane.PageQuery{Environment: f.rt.environment, Limit: options.Limit}}
	if options.After != "" {
		position, err := openCursor(options.After, scope, "FlowListOptions.After")
		if err != nil {
			return nil, err
		}
		part, inner, _ := strings.Cut(position, " ")
		q.Finished, q.After = part == "finished", runlane.Cursor(inner)
	}
	shown := &runlane.Page[runlane.FlowState]{}
	for q.Limit = cmp.Or(q.Limit, runlane.DefaultPageLimit); ; {
		page, err := f.rt.storage().ListFlows(ctx, &q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			state, err := f.listed(ctx, &page.Items[i])
			if err != nil {
				return nil, err
			}
			if state != nil && (len(options.Statuses) == 0 || slices.Contains(options.Statuses, state.Status)) {
				shown.Items = append(shown.Items, *state)
			}
		}
		switch q.Limit -= len(page.Items); {
		case page.Next != "" && q.Finished:
			shown.Next = sealCursor(scope, "finished "+string(page.Next))
		case page.Next != "":
			shown.Next = sealCursor(scope, "open "+string(page.Next))
		case !q.Finished && q.Limit <= 0:
			shown.Next = sealCursor(scope, "finished ")
		case !q.Finished: // there is room for those that have finished
			q.Finished, q.After = true, ""
			continue
		}
		return shown, nil
	}
}

// listed is a flow as lists show it; nil for one that is gone meanwhile.
func (f *Flows) listed(ctx context.Context, record *lane.FlowRecord) (*runlane.FlowState, error) {
	if record.Finished() {
		return (&flow{rt: f.rt, record: record, graph: &graph{}}).shown(nil), nil
	}
	read, err := f.rt.flow(ctx, record.ID)
	if errors.Is(err, runlane.ErrFlowNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state, err := read.state(ctx)
	if err == nil {
		state.Nodes = nil
	}
	return state, err
}

// All walks the pages of [Flows.List]. An error is the last thing it yields.
func (f *Flows) All(ctx context.Context, options *FlowListOptions) iter.Seq2[runlane.FlowState, error] {
	at := FlowListOptions{}
	if options != nil {
		at = *options
	}
	return func(yield func(runlane.FlowState, error) bool) {
		for at := at; ; {
			page, err := f.List(ctx, &at)
			if err != nil {
				yield(runlane.FlowState{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i], nil) {
					return
				}
			}
			if at.After = page.Next; page.Next == "" {
				return
			}
		}
	}
}

// CancelFlowOptions of [Flows.Cancel]. nil means those of a nil ChangeOptions, and that nodes which undo still run.
type CancelFlowOptions struct {
	ChangeOptions
	// Everything ends nodes with runlane.IfFailed or runlane.Always, too: what had begun is not undone.
	Everything bool
}

// Cancel closes a flow and cancels its runs that have not ended, as [Runs.Cancel] does. Nodes with runlane.IfFailed or
// runlane.Always are left to their conditions, which the cancelled runs may meet, unless the options say Everything. A
// call may be repeated, whatever became of the one before: it is the same cancellation. The flow is returned as the
// call left it. What this call does not come to is done by a tick. Errors:
//
//   - runlane.ErrValidationFailed: the flow has finished, or the options are wrong (then nothing was read).
//   - runlane.ErrFlowNotFound: there is no such flow.
func (f *Flows) Cancel(
	ctx context.Context, id runlane.FlowID, options *CancelFlowOptions,
) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	if options == nil {
		options = &CancelFlowOptions{}
	}
	read, by, err := f.toChange(ctx, id, &options.ChangeOptions)
	if err != nil {
		return nil, err
	}
	closed := 1
	if options.Everything {
		closed = 2
	}
	open := false
	_, err = read.change(ctx, func(record *lane.FlowRecord) bool {
		open = true
		if record.Closed >= closed {
			return false // this very cancellation, whose answer was lost, or another one
		}
		record.Closed, record.TendAt = closed, f.rt.now()
		return true
	})
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, flowInvalid(id, "a flow that has finished is retried, or started under another id",
			"has finished, or was retried meanwhile: there is nothing to cancel")
	}
	if by.reason == "" {
		by.reason = reasonFlowClosed
	}
	if err := read.sweep(ctx, by); err != nil {
		return nil, err
	}
	state, err := f.again(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := read.swept(ctx); err != nil {
		f.rt.logger.LogAttrs(ctx, slog.LevelWarn, "a tick looks again at the nodes of a cancelled flow",
			slog.String("flow", string(id)), slog.Any("error", err))
	}
	return state, nil
}

// toChange reads a flow that is to be changed, once the options are known to be right.
func (f *Flows) toChange(ctx context.Context, id runlane.FlowID, options *ChangeOptions) (*flow, change, error) {
	by, err := f.rt.newChange(options, "ChangeOptions")
	if err != nil {
		return nil, change{}, err
	}
	read, err := f.read(ctx, id)
	return read, by, err
}

// again reads a flow after a change.
func (f *Flows) again(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	read, err := f.rt.flow(ctx, id)
	if err != nil {
		return nil, err
	}
	return read.state(ctx)
}

// RetryFlowOptions of [Flows.Retry]. nil means those of a nil ChangeOptions, the next retry, and that nodes with
// runlane.IfFailed undo.
type RetryFlowOptions struct {
	ChangeOptions
	// Number is the retry that is meant: Retries of the flow as the caller has seen it, and one more. A call with it
	// makes that retry once, however often it is repeated: where it was begun, the flow is returned. 0: the next.
	Number int
	// NothingUndone says that the nodes with runlane.IfFailed which succeeded undid nothing: they were alerts, for
	// example.
	NothingUndone bool
}

func (o *RetryFlowOptions) check() error {
	if o.Number < 0 || o.Number > runlane.MaxFlowRetries {
		return invalidInput("use 0 for the next", "RetryFlowOptions.Number is %d, not within 0 and %d",
			o.Number, runlane.MaxFlowRetries)
	}
	return nil
}

// Retry makes new runs for the nodes of a finished flow that failed or were cancelled, and for all that goes after
// those, with the same payloads. What succeeded stays, and so does a node whose condition the ends that stay do not
// meet. A flow in which a node with runlane.IfFailed has succeeded is refused unless the options say NothingUndone:
// what the node undid is not made again, so that a payment that was refunded would stay so. A call whose outcome is
// unknown is repeated: it goes on with what was begun. Give RetryFlowOptions.Number then: without it, a call that is
// repeated after that retry has ended makes another one. Errors:
//
//   - runlane.ErrValidationFailed: the flow has not finished or was undone, nothing in it is to be retried, a run was
//     never made or is pruned, Number is behind the next retry, or the options are wrong (then nothing was read).
//   - runlane.ErrFlowNotFound: there is no such flow.
//   - runlane.ErrPayloadUnreadable: this process cannot open a payload.
func (f *Flows) Retry(ctx context.Context, id runlane.FlowID, options *RetryFlowOptions) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	if options == nil {
		options = &RetryFlowOptions{}
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	read, by, err := f.toChange(ctx, id, &options.ChangeOptions)
	if err != nil {
		return nil, err
	}
	begun, err := read.begun(options.Number)
	if err != nil {
		return nil, err
	}
	if !begun {
		if err := read.renew(ctx, by, options.NothingUndone); err != nil {
			return nil, err
		}
	}
	if !read.retrying() {
		return read.state(ctx) // all its runs were made
	}
	err = read.make(ctx, begun, func(ctx context.Context, i int) error { return read.remake(ctx, by, i) })
	if err != nil {
		return nil, err
	}
	return f.again(ctx, id)
}

// PlanRetry names the nodes of which [Flows.Retry] would make new runs, in the order of their adding, and changes
// nothing. Where that retry was begun, they are those of the latest. Errors are those of Retry.
func (f *Flows) PlanRetry(ctx context.Context, id runlane.FlowID, options *RetryFlowOptions) ([]string, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	if options == nil {
		options = &RetryFlowOptions{}
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	read, err := f.read(ctx, id)
	if err != nil {
		return nil, err
	}
	begun, err := read.begun(options.Number)
	if err != nil {
		return nil, err
	}
	round, plan := read.record.Round, read.plan
	if !begun {
		next, err := read.renewal(ctx, options.NothingUndone)
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

// retrying reports a retry that was begun and has not made all its runs.
func (f *flow) retrying() bool {
	return f.record.Round > 0 && !f.record.TendAt.IsZero() && f.record.Closed == 0
}

// begun reports that a retry of this number was begun. 0 is the one that has not made all its runs, else the next.
func (f *flow) begun(number int) (bool, error) {
	if number > f.record.Round+1 {
		return false, flowInvalid(f.record.ID, "look at it, and give its retries and one more",
			"was retried %d times: its next retry is not number %d", f.record.Round, number)
	}
	return number > 0 && number <= f.record.Round || number == 0 && f.retrying(), nil
}

// renew begins the next round, once it is known that each of its runs can be made: what it writes takes the flow's end
// away.
func (f *flow) renew(ctx context.Context, by change, nothingUndone bool) error {
	plan, err := f.renewal(ctx, nothingUndone)
	if err != nil {
		return err
	}
	next := *f.record
	err = inParallel(len(plan.Nodes), func(i int) error {
		if plan.Nodes[i].Round != next.Round+1 {
			return nil
		}
		_, err := f.repeat(ctx, by, i, plan.Nodes[i].Before)
		return err
	})
	if err != nil {
		return err
	}
	next.Round, next.Closed, next.Status = next.Round+1, 0, ""
	next.FinishedAt, next.TendAt = time.Time{}, f.rt.now().Add(flowPatience)
	if next.Plan, err = json.Marshal(plan); err != nil {
		return err
	}
	if len(next.Plan) > lane.MaxFlowPlanBytes {
		return flowInvalid(f.record.ID, "start it under another id", "has a graph of %d bytes with what a retry adds, "+
			"more than %d", len(next.Plan), lane.MaxFlowPlanBytes)
	}
	put, err := f.rt.storage().PutFlow(ctx, &lane.FlowCommand{Environment: f.rt.environment, Flow: next})
	if err == nil {
		f.record, f.graph = put, newGraph(*plan)
	}
	return err
}

// renewal is the graph of the next round.
func (f *flow) renewal(ctx context.Context, nothingUndone bool) (*flowPlan, error) {
	if !f.record.Finished() {
		return nil, flowInvalid(f.record.ID, "cancel it first, or wait for its end", "has not finished")
	}
	if f.record.Round == runlane.MaxFlowRetries {
		return nil, flowInvalid(f.record.ID, "start it under another id", "was retried %d times", f.record.Round)
	}
	runs, err := f.read(ctx, f.every())
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
			torn := f.record.Closed > 0 && len(n.Before) > 0                             // by a cancellation, while a retry made its runs
			if runs[i] == nil && !torn || runs[i] != nil && runs[i].CreatedAt.IsZero() { // known by its end alone
				return nil, flowInvalid(f.record.ID, "start it under another id",
					"has the node %q, whose run is gone or was never made", n.Name)
			}
			if f.stays(&plan, round, i, runs) {
				n.End = runs[i].Status
				continue
			}
			n.Owed = f.owes(i, runs)
			n.replaced(round)
			if runs[i] == nil { // an earlier run is repeated, and may be gone
				if _, err := f.repeat(ctx, change{rt: f.rt}, i, n.Before); err != nil {
					return nil, err
				}
			}
			renewed++
		}
	}
	if renewed == 0 {
		return nil, flowInvalid(f.record.ID, "look at its nodes", "has nothing to retry")
	}
	if undone := f.undone(runs); len(undone) > 0 && !nothingUndone {
		return nil, flowInvalid(f.record.ID,
			"start another flow; where they undid nothing, as an alert does not, say so with NothingUndone (--nothing-undone)",
			"was undone by %s, run because others failed: a retry does not make again what was undone", someOf(undone))
	}
	return &plan, nil
}

// undone names the nodes that undid: with IfFailed, and with success.
func (f *flow) undone(runs map[int]*runlane.Run) (names []string) {
	for i := range f.plan.Nodes {
		if run := runs[i]; f.plan.Nodes[i].If == runlane.IfFailed && run != nil && run.Status == runlane.StatusSucceeded {
			names = append(names, f.plan.Nodes[i].Name)
		}
	}
	return names
}

// someOf are names for people, not too many of them.
func someOf(names []string) string {
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

// stays reports a node that a retry leaves as it is.
func (f *flow) stays(plan *flowPlan, round, i int, runs map[int]*runlane.Run) bool {
	before := map[int]*runlane.Run{}
	for _, after := range plan.Nodes[i].After {
		if plan.Nodes[after].Round == round {
			return false
		}
		before[after] = runs[after]
	}
	return runs[i] != nil && (runs[i].Status == runlane.StatusSucceeded || len(before) > 0 && !f.met(i, before))
}

// owes reports a node that undoes and has to do so still: what it undoes has begun, in this round or before, and it has
// not succeeded since.
func (f *flow) owes(i int, runs map[int]*runlane.Run) bool {
	n := &f.plan.Nodes[i]
	if n.If != runlane.IfFailed || runs[i] != nil && runs[i].Status == runlane.StatusSucceeded {
		return false
	}
	return n.Owed || slices.ContainsFunc(n.After, func(after int) bool {
		run := runs[after]
		return run != nil && run.Status != runlane.StatusSucceeded && run.Counters.Attempts > 0
	})
}
