package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// callChunk is how many runs are read at once.
const callChunk = 100

type calling struct {
	rt      *Runtime
	parent  *runlane.Run
	request runlane.CallRequest
	calls   []runlane.Call // encoded
	call    lane.RunCall
}

// CallRuns implements runlane.Caller: it triggers all of the runs, then blocks until they or ctx have ended.
func (rt *Runtime) CallRuns(ctx context.Context, request runlane.CallRequest) ([]*runlane.Run, error) {
	if runlane.AttemptFrom(ctx) != nil {
		return nil, callInvalid(request.Name, "use the attempt: a call by the runtime blocks the worker",
			"is made by the runtime inside a handler")
	}
	c := calling{rt: rt, request: request}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	runs := make([]*runlane.Run, len(c.calls))
	options := runlane.TriggerOptions{Queue: request.Queue, Meta: request.Meta}
	ids := make([]runlane.RunID, len(runs))
	err := inParallel(len(runs), func(i int) error {
		result, err := rt.Trigger(ctx, c.calls[i], &options)
		if err == nil {
			ids[i] = result.Run.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, inParallel(len(runs), func(i int) (err error) {
		runs[i], err = rt.Wait(ctx, ids[i])
		return err
	})
}

// prepare validates the call and encodes its payloads, before anything is read or written.
func (c *calling) prepare() error {
	n := len(c.request.Calls)
	if n > runlane.MaxCalled {
		return callInvalid(c.request.Name, fmt.Sprintf("call at most %d runs", runlane.MaxCalled), "has %d runs", n)
	}
	sum := sha256.New()
	c.calls = make([]runlane.Call, n)
	for i, call := range c.request.Calls {
		prepared, err := call.Prepare()
		if err != nil {
			return safeError(err)
		}
		if err := c.rt.checkSize("payload", prepared.Payload); err != nil {
			return err
		}
		if call.Task.ID != c.request.Calls[0].Task.ID {
			return callInvalid(c.request.Name, "make a call for each task", "has more than one task")
		}
		if prepared.SingletonKey != "" && c.parent != nil {
			return callInvalid(c.request.Name, "trigger such a task instead: another run, or a sibling, may hold the key",
				"is of a task with a singleton key")
		}
		c.calls[i] = runlane.NewRawCall(call.Task, prepared.Payload)
		fmt.Fprintf(sum, "%d:", len(prepared.Payload))
		sum.Write(prepared.Payload)
	}
	if n == 0 {
		return nil
	}
	c.call = lane.RunCall{Name: c.request.Name, TaskID: c.calls[0].Task.ID, Count: n}
	if !c.rt.coded { // a hash of the plain payloads would confirm a guess
		c.call.Sum = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return nil
}

func callInvalid(name, hint, format string, args ...any) error {
	return invalidInput(hint, fmt.Sprintf("call %q ", name)+format, args...)
}

// CallRuns implements runlane.Caller: it creates the children once and suspends the attempt until all have ended. The
// ends of runs never change, so the answer needs no record.
func (x *execution) CallRuns(ctx context.Context, request runlane.CallRequest) (runs []*runlane.Run, err error) {
	if err := x.rt.suspends(); err != nil {
		return nil, err
	}
	c := calling{rt: x.rt, parent: x.started, request: request}
	if err := firstError(runlane.ValidateCallName(request.Name), c.checkDepth(), c.prepare()); err != nil {
		return nil, err
	}
	if len(request.Calls) == 0 {
		return []*runlane.Run{}, nil
	}
	if _, err := x.recall(ctx, runlane.StepCall{Name: request.Name, Kind: runlane.StepKindCall}); err != nil {
		return nil, err
	}
	answered := false
	defer func() { x.endCall(request.Name, answered) }()
	if runs, err = x.inheritCall(ctx, &c); runs != nil || err != nil {
		answered = err == nil
		return runs, err
	}
	known, begun, err := x.beginCall(ctx, &c)
	if err != nil {
		return nil, err
	}
	if !known.Same(&c.call) {
		return nil, c.changed(known)
	}
	c.call = *known
	var look time.Time
	if !c.call.Whole() {
		missing, ended, err := c.missing(ctx, begun)
		if err != nil {
			return nil, err
		}
		existing, err := c.createChildren(x.handling, missing)
		if err != nil {
			return nil, err
		}
		if existing && begun || ended > c.call.Ended {
			look = x.rt.now().Add(callLook)
		}
		answered = ended == c.call.Count
	}
	if c.call.Whole() || answered {
		runs, err = c.read(ctx, false)
		answered = err == nil
		return runs, err
	}
	return nil, x.suspendCall(&c, look)
}

// changed describes how a call differs from that of an earlier attempt under the same name.
func (c *calling) changed(known *lane.RunCall) error {
	const hint = "a call never changes: give the new call another name, and the task a Version to recognize earlier runs"
	switch name := c.request.Name; {
	case known.TaskID != c.call.TaskID:
		return callInvalid(name, hint, "is of task %q, and was of %q in an earlier attempt",
			c.call.TaskID, known.TaskID)
	case known.Count != c.call.Count:
		return callInvalid(name, "take the payloads from the run's own or from a step; "+hint,
			"has %d runs, and had %d in an earlier attempt", c.call.Count, known.Count)
	default:
		return callInvalid(name, "take them from the run's own payload or from a step, and give a new field"+
			" of their type omitempty or omitzero; or "+hint,
			"has other payloads than in an earlier attempt, as when their type has got a field without omitempty")
	}
}

// endCall ends a call. An answered call keeps its name; others may be made again.
func (x *execution) endCall(name string, answered bool) {
	if !answered {
		x.forgo(name)
		return
	}
	x.steps.mu.Lock()
	x.steps.begun-- // it has no record
	x.steps.mu.Unlock()
}

// suspendCall suspends the attempt until all children have ended, or until look.
func (x *execution) suspendCall(c *calling, look time.Time) error {
	w := &runlane.Waiting{
		For:   []runlane.WaitingFor{runlane.WaitingChildren},
		Names: []string{c.call.Name},
		Need:  c.call.Count - c.call.Ended,
		Until: ceilMillis(look),
	}
	if !look.IsZero() {
		w.For = append(w.For, runlane.WaitingTime)
	}
	reason := fmt.Sprintf("waits for %d runs of %s", w.Need, c.call.TaskID)
	if w.Need == 1 {
		reason = fmt.Sprintf("waits for a run of %s", c.call.TaskID)
	}
	return x.suspendFor(reason, pendingWait{
		name:   c.call.Name,
		wait:   w,
		mailed: -1,
		called: c.call.At,
	})
}

// beginCall returns the stored call. begun: it was stored now, so it has no children. Only attempts that may find a
// stored call read first.
func (x *execution) beginCall(ctx context.Context, c *calling) (known *lane.RunCall, begun bool, err error) {
	key := lane.RunKey{Environment: x.rt.environment, RunID: x.started.ID}
	x.suspended.mu.Lock()
	again := x.suspended.again
	x.suspended.mu.Unlock()
	if again || x.remote || x.started.Counters.Attempts > 1 { // a client repeats calls that got no answer
		read, err := x.rt.storage().ReadCalls(ctx, &lane.CallQuery{RunKey: key, Name: c.call.Name})
		if err != nil {
			return nil, false, err
		}
		if len(read.Calls) > 0 {
			return &read.Calls[0], false, nil
		}
	}
	c.call.At = x.rt.now()
	known, err = x.rt.storage().BeginCall(ctx, &lane.CallCommand{
		RunKey:     key,
		CreatedAt:  x.started.CreatedAt,
		LeaseToken: x.token,
		Call:       c.call,
	})
	return known, true, err
}

// missing returns the indexes of missing children, and how many have ended. The call may have counted fewer: ends
// reported before it was stored, or just now.
func (c *calling) missing(ctx context.Context, begun bool) (places []int, ended int, err error) {
	if begun {
		for i := range c.calls {
			places = append(places, i)
		}
		return places, 0, nil
	}
	runs, err := c.read(ctx, true)
	if err != nil {
		return nil, 0, err
	}
	for i, run := range runs {
		switch {
		case run == nil:
			places = append(places, i)
		case run.Status.Terminal():
			ended++
		}
	}
	return places, ended, nil
}

// read reads the children in order; runs of other origin do not count. bare leaves out payloads, and returns
// nil for missing children instead of an error.
func (c *calling) read(ctx context.Context, bare bool) ([]*runlane.Run, error) {
	ids := childIDs(c.parent, &c.call)
	runs := make([]*runlane.Run, len(ids))
	place := make(map[runlane.RunID]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	for chunk := range slices.Chunk(ids, callChunk) {
		found, err := c.rt.storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: c.rt.environment, IDs: chunk, WithoutPayload: bare,
		})
		if err != nil {
			return nil, err
		}
		for _, run := range found {
			if origin.Same(run.Source, callSource(c.parent, c.call.Name)) {
				runs[place[run.ID]] = run
			}
		}
	}
	if i := slices.Index(runs, nil); i >= 0 && !bare {
		return nil, &runlane.Error{
			Code:    runlane.ErrInvariantViolation,
			Message: fmt.Sprintf("run %d of call %q is gone, although it was counted", i, c.call.Name),
			RunID:   ids[i],
		}
	}
	return runs, nil
}

// createChildren creates each child once. existing reports that one existed.
func (c *calling) createChildren(ctx context.Context, places []int) (existing bool, err error) {
	var mu sync.Mutex
	ids := childIDs(c.parent, &c.call)
	origins, err := c.origins(ctx)
	if err != nil {
		return false, err
	}
	options := runlane.TriggerOptions{Queue: c.request.Queue, Meta: c.request.Meta}
	err = inParallel(len(places), func(n int) error {
		if ctx.Err() != nil { // the lease is lost, or the attempt's time is over
			return context.Cause(ctx)
		}
		i := places[n]
		given := options
		given.RunID = ids[i]
		by := caller{parent: c.parent, parentCall: c.call.Name}
		if origins != nil {
			by.origin = origins[i]
		}
		result, err := c.rt.trigger(ctx, c.calls[i], &given, by)
		if err == nil && result.Outcome == runlane.TriggerReturnedExisting {
			mu.Lock()
			existing = true
			mu.Unlock()
		}
		return err
	})
	return existing, err
}

// origins returns the runs of this call in the run that did the caller's work first; nil where that is the caller, or is
// gone: the effects of a pruned run are older than keys are kept.
func (c *calling) origins(ctx context.Context) ([]runlane.RunID, error) {
	if c.parent.Source.OriginID == "" {
		return nil, nil
	}
	first, err := c.rt.bare(ctx, c.parent.Source.OriginID)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return childIDs(first, &c.call), nil
}

// checkDepth rejects a call with too many callers above it, since recursive calls would make runs without end. The
// error is permanent: another attempt would get it too.
func (c *calling) checkDepth() error {
	depth := callSource(c.parent, c.request.Name).Depth
	if depth < runlane.MaxCallDepth {
		return nil
	}
	return runlane.Permanent(callInvalid(c.request.Name, "end the recursion of tasks that call themselves",
		"is nested below %d called runs, the maximum", depth))
}

// childIDs derives the ids of a call's runs. The creation time of the calling run makes them unique for ever.
func childIDs(parent *runlane.Run, call *lane.RunCall) []runlane.RunID {
	ids := make([]runlane.RunID, call.Count)
	for i := range ids {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s:%d:%s:%d", parent.ID, parent.CreatedAt.UnixMilli(), call.Name, i))
		ids[i] = runlane.RunID("run_" + hex.EncodeToString(sum[:16]))
	}
	return ids
}
