package runlane

import (
	"context"
	"fmt"
	"maps"
)

// Bounds of calls.
const (
	// MaxCalled is the maximum number of runs of one call.
	MaxCalled = 10_000
	// MaxCallDepth is the maximum depth of nested calls. It stops a task that calls itself.
	MaxCallDepth = 32
)

// Func is a task with a result: P goes in, R comes out. It embeds [Task], with all of its methods. Func[P, R]{Task: t}
// gives a result type to an existing task that sets its output itself.
type Func[P, R any] struct {
	*Task[P]
}

// NewFunc defines a task with a result. Both types are given: NewFunc[Page, PDF]("pages.render", nil).
func NewFunc[P, R any](id TaskID, options *TaskOptions[P]) *Func[P, R] {
	return &Func[P, R]{Task: NewTask(id, options)}
}

// Handle gives the task its handler. A result returned with a nil error becomes the run's output, as with
// [Attempt.SetOutput]; otherwise it is dropped.
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
// In an attempt, the run is a child: made once, however often the handler runs, and cancelled with its parent. Until it
// ends, the error is a suspension ([Suspended]): return it, and the handler runs again from its beginning when the
// child has ended. With a runtime, Call blocks until the run ends or ctx does; the run goes on either way.
//
// If the run did not succeed, the error is [ErrRunFailed] or [ErrRunCancelled], with the run's failure as the cause:
// errors.Is finds the code that the child's handler returned. The message names the run and its task. In an attempt
// such an error is already [Permanent], because every later attempt would get it again. See [Caller] for errors of the
// call itself.
func (f *Func[P, R]) Call(ctx context.Context, c Caller, payload P, options *CallOptions) (R, error) {
	results, err := CallAll(ctx, c, f, []P{payload}, options)
	if err != nil {
		var zero R
		return zero, err
	}
	return results[0].Value, results[0].Err
}

// Result decodes the result of a run. Without output it is the zero R. The error is [ErrRunFailed], [ErrRunCancelled],
// or [ErrValidationFailed] if the run has not ended or belongs to another task.
func (f *Func[P, R]) Result(run *Run) (R, error) { return resultOf[R](f.definition.ID, run) }

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

// Result is the end of one of several runs.
type Result[R any] struct {
	RunID RunID
	Value R
	Err   error // as of [Func.Call]; nil when the run succeeded
}

// CallAll is [Func.Call] for up to [MaxCalled] payloads; a waiting handler runs again once, after the last of them.
// Results are in the order of the payloads, each with the error of its run. The returned error is a suspension, or
// concerns the call as a whole.
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
	// means the task's ID. A runtime needs none.
	Name string
	// Queue of the runs. The zero value means the task's.
	Queue Queue
	// Meta is stored with each of the runs, see [TriggerOptions].
	Meta map[string]string
}

// CallRequest is the call that a [Caller] receives.
type CallRequest struct {
	CallOptions
	// Calls are of one task.
	Calls []Call
}

// Caller makes runs and waits for their end. *Attempt suspends while it waits, *core.Runtime blocks.
//
// CallRuns returns the ended runs in the order of the calls; without calls it returns at once. Children have derived
// IDs and no idempotency key. Errors:
//
//   - a suspension ([Suspended]), in an attempt.
//   - [ErrValidationFailed]: the name is invalid or has another meaning in this run; there are more than [MaxCalled]
//     calls, or an earlier attempt made different ones (number, task or payloads: take them from the payload or from a
//     step); the call is within a step, or the run is itself [MaxCallDepth] calls deep; a runtime is used within a
//     handler.
//   - [ConflictSingletonKey]: another run has the singleton key of a call.
//   - [ErrOperationCancelled]: ctx ended first, with a runtime.
//   - [ErrCapabilityUnsupported]: the storage keeps no calls, in an attempt.
type Caller interface {
	CallRuns(ctx context.Context, request CallRequest) ([]*Run, error)
}

var _ Caller = (*Attempt)(nil)

// CallRuns makes runs and waits for them, see [Caller] and [Func.Call].
func (a *Attempt) CallRuns(ctx context.Context, request CallRequest) ([]*Run, error) {
	if a.host.Calls == nil {
		return nil, noHost("for calls")
	}
	if err := a.refuseWithinStep(ctx, request.Name); err != nil {
		return nil, err
	}
	return a.host.Calls.CallRuns(ctx, request)
}
