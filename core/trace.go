package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Tracer gets the beginning of each piece of the runtime's work, for example to make a span of it; module otel has one
// for OpenTelemetry. It returns the context of the work, and a function for the end, or nil for none. Calls come from
// many goroutines at once and must not block. A panic is recovered, and that work goes on without a trace.
type Tracer func(ctx context.Context, w *Work) (context.Context, func(WorkEnd))

// WorkKind says what a [Work] does.
type WorkKind string

// The kinds of work.
const (
	// WorkCreate makes a run: a trigger, a child, a node of a flow, an occurrence of a schedule, a retry or a rerun.
	WorkCreate WorkKind = "create"
	// WorkFlow starts a flow. Its runs are made inside.
	WorkFlow WorkKind = "flow"
	// WorkPublish hands wakeups to the transport.
	WorkPublish WorkKind = "publish"
	// WorkInvocation is one call of a function in packages functions and functionurl: Work.Name is its role.
	WorkInvocation WorkKind = "invocation"
	// WorkAttempt is an attempt, from before the claim until after the outcome. Of an attempt of a client, which has
	// Work.Began, the whole is told at its end.
	WorkAttempt WorkKind = "attempt"
	// WorkClaim takes the lease of a run, inside its attempt or for a client.
	WorkClaim WorkKind = "claim"
	// WorkStep executes a step: Work.Name is its name. A step that was recorded before is not executed.
	WorkStep WorkKind = "step"
)

// Work is one piece of work that begins. Fields that do not apply are zero. Only a Tracer's changes of Carrier have an
// effect.
type Work struct {
	Kind        WorkKind
	Environment runlane.Environment
	RunID       runlane.RunID
	TaskID      runlane.TaskID
	Queue       runlane.QueueName
	Attempt     int
	Source      runlane.Source // of a run that is made
	WorkerID    string
	Name        string    // of a step, a flow or a role
	Began       time.Time // zero: now
	Count       int       // of wakeups
	// Carrier is the trace that the work belongs to: of its run; of a run that is made, the one that the call names, or
	// that of the run which makes it or is retried. nil means none. For WorkCreate the tracer replaces it by what the
	// new run keeps and hands to its attempts. A carrier that does not fit beside the run's meta is dropped.
	Carrier map[string]string
	// Links are the traces of all runs of work that serves several, and of the run that a rerun repeats.
	Links []map[string]string
}

// WorkEnd is the end of a [Work].
type WorkEnd struct {
	// Run is the run afterwards; nil for none. Do not change it.
	Run *runlane.Run
	// Existing: a creation found the run that a call had made before.
	Existing bool
	// Ignored is why an attempt was not executed, or its outcome not recorded.
	Ignored Ignored
	// Failed counts refused wakeups.
	Failed int
	Err    error
}

// Traces reports whether the runtime has a [Tracer].
func (rt *Runtime) Traces() bool { return rt.tracer != nil }

// Trace begins a piece of work outside the runtime, as package functions does. Without a [Tracer] it does nothing. Call
// end once.
func (rt *Runtime) Trace(ctx context.Context, w Work) (_ context.Context, end func(WorkEnd)) {
	if rt.tracer == nil {
		return ctx, func(WorkEnd) {}
	}
	inside, t := rt.begin(ctx, &w)
	return inside, t.done
}

// tracing is work in progress. The zero value is not traced.
type tracing struct{ end func(WorkEnd) }

func (t tracing) done(e WorkEnd) {
	if t.end == nil {
		return
	}
	defer func() { _ = recover() }() // a trace is never worth a run
	t.end(e)
}

// begin needs a tracer.
func (rt *Runtime) begin(ctx context.Context, w *Work) (inside context.Context, t tracing) {
	w.Environment = rt.environment
	defer func() {
		if recover() != nil || inside == nil { // a trace is never worth a run
			inside, t = ctx, tracing{}
		}
	}()
	inside, t.end = rt.tracer(ctx, w)
	return inside, t
}

// traceCreation begins the creation of a prepared plan, whose run gets the carrier of the trace.
func (rt *Runtime) traceCreation(ctx context.Context, p *plan) (context.Context, tracing) {
	if rt.tracer == nil {
		return ctx, tracing{}
	}
	w := Work{
		Kind: WorkCreate, RunID: p.id, TaskID: p.task.ID, Queue: p.queue.Name, Source: p.source, Carrier: p.traceCarrier,
	}
	if len(p.traceLink) > 0 {
		w.Links = append(w.Links, p.traceLink)
	}
	inside, t := rt.begin(ctx, &w)
	given := p.traceCarrier
	if p.traceCarrier = w.Carrier; checkMeta(p) != nil {
		p.traceCarrier = given
	}
	return inside, t
}

func createdEnd(result *runlane.TriggerResult, err error) WorkEnd {
	if result == nil {
		return WorkEnd{Err: err}
	}
	return WorkEnd{Run: result.Run, Existing: result.Outcome == runlane.TriggerReturnedExisting, Err: err}
}

func commitEnd(commit *lane.Commit, err error) WorkEnd {
	if commit == nil {
		return WorkEnd{Err: err}
	}
	return WorkEnd{Run: commit.Run, Err: err}
}

// traceRun begins work on a run that is claimed for attempt number n.
func (rt *Runtime) traceRun(
	ctx context.Context, kind WorkKind, run *runlane.Run, n int, workerID string,
) (context.Context, tracing) {
	if rt.tracer == nil {
		return ctx, tracing{}
	}
	return rt.begin(ctx, runWork(kind, run, n, workerID))
}

func runWork(kind WorkKind, run *runlane.Run, n int, workerID string) *Work {
	return &Work{
		Kind: kind, RunID: run.ID, TaskID: run.TaskID, Queue: run.Queue, Attempt: n, WorkerID: workerID,
		Carrier: run.TraceCarrier,
	}
}

func deliveredEnd(result *DeliveryResult, err error) WorkEnd {
	if result == nil {
		return WorkEnd{Ignored: IgnoredClaimLost, Err: err}
	}
	return WorkEnd{Run: result.Run, Ignored: result.Ignored, Err: err}
}

func claimEnd(x *execution, lost lane.Outcome, err error) WorkEnd {
	switch {
	case x != nil:
		return WorkEnd{Run: x.started}
	case lost == lane.LostCapacity:
		return WorkEnd{Ignored: IgnoredNoCapacity}
	case lost == lane.LostRate:
		return WorkEnd{Ignored: IgnoredNoRate}
	default:
		return WorkEnd{Ignored: IgnoredClaimLost, Err: err}
	}
}

// traceStep begins the execution of a step.
func (x *execution) traceStep(ctx context.Context, call runlane.StepCall) (context.Context, tracing) {
	if x.rt.tracer == nil || call.Kind != runlane.StepKindStep {
		return ctx, tracing{}
	}
	w := runWork(WorkStep, x.started, x.started.Counters.Attempts, x.workerID)
	w.Name = call.Name
	return x.rt.begin(ctx, w)
}

// traceEnded tells the whole attempt of a client, whose beginning may have been in another process.
func (x *execution) traceEnded(ctx context.Context, run *runlane.Run) {
	if x.rt.tracer == nil {
		return
	}
	w := runWork(WorkAttempt, x.started, x.started.Counters.Attempts, x.workerID)
	w.Began = x.started.StartedAt
	_, t := x.rt.begin(ctx, w)
	t.done(WorkEnd{Run: run})
}

// tracePublish begins the sending of wakeups. One alone belongs to the trace of its run.
func (rt *Runtime) tracePublish(ctx context.Context, n int, wakeup func(i int) *lane.Wakeup) (context.Context, tracing) {
	if rt.tracer == nil {
		return ctx, tracing{}
	}
	first := wakeup(0)
	w := Work{Kind: WorkPublish, Count: n, Queue: first.Queue}
	if n == 1 {
		w.RunID, w.Carrier = first.RunID, first.TraceCarrier
		return rt.begin(ctx, &w)
	}
	for i := range n {
		one := wakeup(i)
		if one.Queue != w.Queue {
			w.Queue = "" // of several
		}
		if len(one.TraceCarrier) > 0 {
			w.Links = append(w.Links, one.TraceCarrier)
		}
	}
	return rt.begin(ctx, &w)
}
