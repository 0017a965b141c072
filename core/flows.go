package core

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/flow"
	"github.com/runlane/runlane-go/lane"
)

// Flows is the operator's view of flows. Stateless: get one with [Runtime.Flows] when you need it.
type Flows struct{ rt *Runtime }

// Flows returns the view.
func (rt *Runtime) Flows() *Flows { return &Flows{rt: rt} }

// FlowListOptions of [Flows.List]. nil means all.
type FlowListOptions struct {
	// Statuses to list. Empty: all.
	Statuses []runlane.FlowStatus
	// After continues behind an earlier page.
	After runlane.Cursor
	// Limit bounds the flows that a page looks at, 0 for the default of lists.
	Limit int
}

// Get returns a flow as it is now. An unknown flow is runlane.ErrFlowNotFound.
func (f *Flows) Get(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	read, err := f.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return read.State(ctx)
}

func (f *Flows) read(ctx context.Context, id runlane.FlowID) (*flow.Flow, error) {
	if err := firstError(id.Validate(), f.rt.suspends()); err != nil {
		return nil, err
	}
	return f.rt.flows.Read(ctx, id)
}

// Wait returns the flow once its last run has ended, see [Runtime.Wait].
func (f *Flows) Wait(ctx context.Context, id runlane.FlowID) (*runlane.FlowState, error) {
	if err := f.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer f.rt.gate.leave()
	var read *flow.Flow
	err := f.rt.await(ctx, endOf{flow: id}, func() (over bool, err error) {
		read, err = f.read(ctx, id)
		return err == nil && read.Finished(), err
	})
	switch {
	case err == nil:
		return read.State(ctx)
	case ctx.Err() != nil:
		return nil, cancelled(ctx, "")
	default:
		return nil, err
	}
}

// List returns a page of flows without their nodes: unfinished ones by id, then the others, latest first. A page may be
// short or empty and still have a Next. Lists lag a little behind [Flows.Get].
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
			state, err := f.rt.flows.Listed(ctx, &page.Items[i])
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
		case !q.Finished: // there is room for finished flows
			q.Finished, q.After = true, ""
			continue
		}
		return shown, nil
	}
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

// CancelFlowOptions of [Flows.Cancel]. nil means no options.
type CancelFlowOptions struct {
	ChangeOptions
	// Everything also cancels nodes with runlane.IfFailed or runlane.Always, so that they undo nothing.
	Everything bool
}

// Cancel closes a flow and cancels its unfinished runs, as [Runs.Cancel] does. Nodes with runlane.IfFailed or
// runlane.Always keep their conditions, which the cancelled runs may meet, unless the options say Everything. A
// repeated call is the same cancellation. A tick finishes what the call leaves. The flow is returned as the call left
// it. Errors:
//
//   - runlane.ErrValidationFailed: the flow has finished, or the options are wrong (checked before any read).
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
	return f.rt.flows.Cancel(ctx, read, by, options.Everything)
}

// toChange checks the options, then reads the flow.
func (f *Flows) toChange(ctx context.Context, id runlane.FlowID, options *ChangeOptions) (*flow.Flow, flow.By, error) {
	actor, reason, err := options.settle("ChangeOptions")
	if err != nil {
		return nil, flow.By{}, err
	}
	read, err := f.read(ctx, id)
	return read, flow.By{Actor: actor, Reason: reason}, err
}

// RetryFlowOptions of [Flows.Retry]. nil means no options.
type RetryFlowOptions struct {
	ChangeOptions
	// Number selects a retry: the flow's Retries as last seen, plus one. Repeated calls make that retry once, and return
	// the flow if it has begun. 0 means the next.
	Number int
	// NothingUndone: the nodes with runlane.IfFailed that succeeded undid nothing. They were alerts, for example.
	NothingUndone bool
}

func (o *RetryFlowOptions) check() error {
	if o.Number < 0 || o.Number > runlane.MaxFlowRetries {
		return invalidInput("use 0 for the next", "RetryFlowOptions.Number is %d, not within 0 and %d",
			o.Number, runlane.MaxFlowRetries)
	}
	return nil
}

// Retry makes new runs for the nodes of a finished flow that failed or were cancelled, and for all nodes after these,
// with the same payloads. Other nodes stay, and so does a node if the remaining ends do not meet its condition. If a
// node with runlane.IfFailed has succeeded, Retry needs NothingUndone: undone work is not made again, so a refunded
// payment would stay refunded. To repeat a call with an unknown outcome, give RetryFlowOptions.Number: without it, a
// call after the end of the retry makes another one. Errors:
//
//   - runlane.ErrValidationFailed: the flow has not finished or was undone, nothing in it can be retried, a run was
//     never made or is pruned, Number is behind the next retry, or the options are wrong (checked before any read).
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
	return f.rt.flows.Retry(ctx, read, by, options.Number, options.NothingUndone)
}

// PlanRetry returns the nodes for which [Flows.Retry] would make new runs, or has begun to, in the order they were
// added. It changes nothing. Errors as with Retry.
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
	return read.PlanRetry(ctx, options.Number, options.NothingUndone)
}

// ReadSizes sets OutputBytes of the flow's succeeded nodes. It reads their runs with outputs, one hundred at a time.
// Outputs that are gone, or cannot be opened here, have no size.
func (f *Flows) ReadSizes(ctx context.Context, state *runlane.FlowState) error {
	if err := f.rt.gate.enterLate(); err != nil {
		return err
	}
	defer f.rt.gate.leave()
	return f.rt.flows.ReadSizes(ctx, state)
}

// StartFlow makes the runs of a flow durable; nodes that go after others wait for them. A call may be repeated: a flow
// of this id with the same nodes is returned, and completed if an earlier call was interrupted. Nodes follow the rules
// of their tasks, but have no idempotency keys: their ids make each of them once. Errors, before anything is written:
//
//   - runlane.ErrValidationFailed: a bad id, name or payload; no nodes, or more than runlane.MaxFlowNodes; two nodes
//     with one name, a node after an unknown one, a node with runlane.IfFailed after none, a cycle; a task with a
//     singleton key, which another run might hold; a flow of this id with other nodes.
//   - runlane.ErrConfigurationInvalid: a bad definition, or a queue without a binding.
//   - runlane.ErrCapabilityUnsupported: the storage keeps no flows.
//   - runlane.ErrOverloaded: the storage is near its limit. Try again after Error.RetryAfter.
//
// If its start is interrupted for more than an hour, a tick cancels the flow.
func (rt *Runtime) StartFlow(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions,
) (*runlane.FlowState, error) {
	if err := rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer rt.gate.leave()
	if f != nil {
		if err := rt.admit(ctx, len(f.Nodes()), Labels{}); err != nil {
			return nil, err
		}
	}
	return rt.startFlow(ctx, f, options, nil)
}

// startFlow serves applications (carrier nil) and the attempts of clients, with the trace of their run.
func (rt *Runtime) startFlow(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions, carrier map[string]string,
) (*runlane.FlowState, error) {
	if options == nil {
		options = &runlane.FlowOptions{}
	}
	if err := rt.suspends(); err != nil {
		return nil, err
	}
	if rt.tracer == nil || f == nil {
		return rt.flows.Start(ctx, f, options, safeError)
	}
	ctx, t := rt.begin(ctx, &Work{Kind: WorkFlow, Name: string(f.ID()), Carrier: carrier})
	state, err := rt.flows.Start(ctx, f, options, safeError)
	t.done(WorkEnd{Err: err})
	return state, err
}

// flowHost implements flow.Host.
type flowHost struct{ rt *Runtime }

func (h flowHost) Now() time.Time { return h.rt.now() }

func (h flowHost) Storage() lane.Storage { return h.rt.storage() }

func (h flowHost) Check(call runlane.Call, options *runlane.TriggerOptions) error {
	return h.rt.prepare(&plan{options: options, node: &lane.FlowCheck{}}, call)
}

func (h flowHost) Make(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions, n *flow.Node,
) error {
	p := plans.Get().(*plan)
	defer p.done()
	p.options, p.node = options, &n.Check
	if err := h.rt.prepare(p, call); err != nil {
		return err
	}
	return h.create(ctx, p, n)
}

func (h flowHost) CheckRepeat(by flow.By, old *runlane.Run) error {
	_, err := h.by(by).planRepeat(old, runlane.SourceRerun)
	return err
}

func (h flowHost) Repeat(ctx context.Context, by flow.By, old *runlane.Run, n *flow.Node) error {
	p, err := h.by(by).planRepeat(old, runlane.SourceRerun)
	if err != nil {
		return err
	}
	p.id, p.options.RunID, p.node = n.RunID, n.RunID, &n.Check
	n.Source.OriginID = runlane.RunID(old.EffectID())
	p.traceCarrier, p.traceLink = old.TraceCarrier, nil // the flow goes on
	return h.create(ctx, p, n)
}

func (h flowHost) create(ctx context.Context, p *plan, n *flow.Node) error {
	p.source = n.Source
	if n.Waits > 0 {
		p.wait = &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: n.Waits}
		p.availableAt = p.wait.Due()
	}
	ctx, t := h.rt.traceCreation(ctx, p)
	result, commit, err := h.rt.resolve(ctx, p, h.rt.create)
	if commit != nil {
		h.rt.announce(ctx, p, commit)
	}
	t.done(createdEnd(result, err))
	return err
}

func (h flowHost) by(by flow.By) change { return change{rt: h.rt, actor: by.Actor, reason: by.Reason} }

func (h flowHost) Resume(ctx context.Context, run *runlane.Run, body *runlane.RunResumed) error {
	return h.rt.resumeWaiting(ctx, run, body)
}

func (h flowHost) CancelWaiting(ctx context.Context, run *runlane.Run, reason string) error {
	_, err := h.rt.appendEvent(ctx, run, h.rt.now(), &runlane.RunCancelled{Reason: reason})
	return err
}

func (h flowHost) Cancel(ctx context.Context, by flow.By, id runlane.RunID) error {
	if _, _, err := h.by(by).cancel(ctx, id); !movedOn(err) {
		return err
	}
	return nil
}

func (h flowHost) Ended(id runlane.FlowID) { h.rt.ends.notify(endOf{flow: id}) }
