package runlane

import (
	"context"
	"fmt"
	"maps"
)

// Bounds of calls.
const (
	// MaxCalled is how many runs one call may have.
	MaxCalled = 10_000
	// MaxCallDepth is how many called runs may stand one below the other: a task that calls itself ends there.
	MaxCallDepth = 32
)

// Func is a task with a result: P goes in, R comes out. It is a [Task] in every other respect (With, Decode, key
// functions, schedules), which it embeds. Func[P, R]{Task: t} gives a result to a task that exists already and whose
// handler sets it as its output.
type Func[P, R any] struct {
	*Task[P]
}

// NewFunc defines a task with a result. Both types are given: NewFunc[Page, PDF]("pages.render", nil).
func NewFunc[P, R any](id TaskID, options *TaskOptions[P]) *Func[P, R] {
	return &Func[P, R]{Task: NewTask(id, options)}
}

// Handle gives the task its handler. What it returns beside nil is the output of the run, as [Attempt.SetOutput] keeps
// it; beside an error it is dropped.
func (f *Func[P, R]) Handle(fn func(ctx context.Context, a *Attempt, payload P) (R, error)) Handler {
	if fn == nil {
		return f.Task.Handle(nil)
	}
	return f.Task.Handle(func(ctx context.Context, a *Attempt, payload P) error {
		result, err := fn(ctx, a, payload)
		if err != nil {
			return err
		}
		return a.SetOutput(result)
	})
}

// Call makes a run, waits for its end and decodes its result.
//
// By an attempt, the run is a child: made once, however often the handler is called, and cancelled with the run that
// called it. While it has not ended the error is a suspension ([Suspended]): return it, and the handler is called again
// from its beginning when the child has ended. By a runtime, it blocks until ctx ends; the run goes on.
//
// A run that did not succeed is [ErrRunFailed] or [ErrRunCancelled], with its own failure as the cause: errors.Is finds
// the code that the handler of the child returned. The message names the run and its task. In a handler such an error
// is [Permanent] already, because every other attempt would get it again. Errors of the call itself are those of
// [Caller].
func (f *Func[P, R]) Call(ctx context.Context, c Caller, payload P, options *CallOptions) (R, error) {
	results, err := CallAll(ctx, c, f, []P{payload}, options)
	if err != nil {
		var zero R
		return zero, err
	}
	return results[0].Value, results[0].Err
}

// Result decodes the result of a run that succeeded; a run without output has the zero R. Of another run it is
// [ErrRunFailed], [ErrRunCancelled], or [ErrValidationFailed] for one that has not ended, or is of another task.
func (f *Func[P, R]) Result(run *Run) (R, error) { return resultOf[R](f.definition.ID, run) }

// resultOf is [Func.Result] of a task.
func resultOf[R any](task TaskID, run *Run) (R, error) {
	var result R
	if run.TaskID != task {
		return result, &Error{
			Code:    ErrValidationFailed,
			Message: fmt.Sprintf("the run is of task %q, not %q", run.TaskID, task),
			RunID:   run.ID,
		}
	}
	switch run.Status.End() {
	case StatusSucceeded:
		_, err := run.DecodeOutput(&result)
		return result, err
	case StatusCancelled:
		return result, &Error{
			Code:    ErrRunCancelled,
			Message: fmt.Sprintf("run %s of task %q was cancelled", run.ID, task),
			RunID:   run.ID,
		}
	case StatusFailed:
		return result, &Error{
			Code:    ErrRunFailed,
			Message: fmt.Sprintf("run %s of task %q failed: %s", run.ID, task, run.Failure.Message),
			RunID:   run.ID,
			Cause: &Error{
				Code:    run.Failure.Code,
				Message: run.Failure.Message,
				RunID:   run.ID,
				Meta:    maps.Clone(run.Failure.Meta),
			},
		}
	default:
		return result, &Error{Code: ErrValidationFailed, Message: "the run has not ended", RunID: run.ID}
	}
}

// Result is how one of several runs ended.
type Result[R any] struct {
	RunID RunID
	Value R
	Err   error // as of [Func.Call]; nil when the run succeeded
}

// CallAll is [Func.Call] for many payloads, at most [MaxCalled]: a run that waits for them is called again once. The
// results are in the order of the payloads, and runs that did not succeed are errors of their results. The error is a
// suspension, or concerns the call as a whole.
func CallAll[P, R any](
	ctx context.Context, c Caller, f *Func[P, R], payloads []P, options *CallOptions,
) ([]Result[R], error) {
	if options == nil {
		options = &CallOptions{}
	}
	request := CallRequest{CallOptions: *options, Calls: make([]Call, len(payloads))}
	if request.Name == "" {
		request.Name = string(f.definition.ID)
	}
	for i, payload := range payloads {
		request.Calls[i] = f.With(payload)
	}
	runs, err := c.CallRuns(ctx, request)
	if err != nil {
		return nil, err
	}
	_, handled := c.(*Attempt)
	results := make([]Result[R], len(runs))
	for i, run := range runs {
		value, err := f.Result(run)
		if handled {
			err = Permanent(err)
		}
		results[i] = Result[R]{RunID: run.ID, Value: value, Err: err}
	}
	return results, nil
}

// CallOptions of a call. nil means none.
type CallOptions struct {
	// Name of the call, unique among the steps, waits and calls of the run, by the rules of [ValidateCallName]. ""
	// means the task's id. A runtime needs none.
	Name string
	// Queue of the runs. The zero value means the task's.
	Queue Queue
	// Meta is kept with each of the runs, see [TriggerOptions].
	Meta map[string]string
}

// CallRequest is a call as a [Caller] gets it.
type CallRequest struct {
	CallOptions
	// Calls are of one task.
	Calls []Call
}

// Caller makes runs and waits for their end. *Attempt suspends while it waits, *core.Runtime blocks.
//
// CallRuns returns the runs in the order of the calls, all of them ended. No calls are answered at once, with no runs. Children have derived ids and no
// idempotency key. Errors:
//
//   - a suspension ([Suspended]), by an attempt.
//   - [ErrValidationFailed]: the name is bad or has another meaning in this run; there are more calls than
//     [MaxCalled], or those of an earlier attempt were others (number, task or payloads: take them from the payload or
//     from a step); the call stands within a step, or in a run below [MaxCallDepth] called ones; a runtime is used
//     within a handler.
//   - [ConflictSingletonKey]: another run has the singleton key of a call.
//   - [ErrOperationCancelled]: ctx ended first, by a runtime.
//   - [ErrCapabilityUnsupported]: the storage keeps no calls, by an attempt.
type Caller interface {
	CallRuns(ctx context.Context, request CallRequest) ([]*Run, error)
}

var _ Caller = (*Attempt)(nil)

// CallRuns makes runs and waits for them, see [Caller] and [Func.Call].
func (a *Attempt) CallRuns(ctx context.Context, request CallRequest) ([]*Run, error) {
	if a.host.Calls == nil {
		return nil, noHost("calls")
	}
	if err := a.outside(ctx, request.Name); err != nil {
		return nil, err
	}
	return a.host.Calls.CallRuns(ctx, request)
}
