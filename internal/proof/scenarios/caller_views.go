package scenarios

import (
	"context"
	"errors"
	"iter"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// runsCaller repeats the calls of core.Runs.
type runsCaller struct {
	*core.Runs

	c *caller
}

// Runs is the view with repeating calls.
func (c *caller) Runs() runsCaller { return runsCaller{c.Runtime.Runs(), c} }

func (r runsCaller) Get(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	return again(r.c, func() (*runlane.Run, error) { return r.Runs.Get(ctx, id) })
}

func (r runsCaller) List(ctx context.Context, o *core.ListOptions) (*runlane.Page[runlane.RunSummary], error) {
	return again(r.c, func() (*runlane.Page[runlane.RunSummary], error) { return r.Runs.List(ctx, o) })
}

func (r runsCaller) Attempts(ctx context.Context, id runlane.RunID) ([]core.AttemptSummary, error) {
	return again(r.c, func() ([]core.AttemptSummary, error) { return r.Runs.Attempts(ctx, id) })
}

func (r runsCaller) Explain(ctx context.Context, id runlane.RunID) (*core.Explanation, error) {
	return again(r.c, func() (*core.Explanation, error) { return r.Runs.Explain(ctx, id) })
}

func (r runsCaller) FindActive(ctx context.Context, task runlane.TaskID, key string) (*runlane.Run, error) {
	return again(r.c, func() (*runlane.Run, error) { return r.Runs.FindActive(ctx, task, key) })
}

func (r runsCaller) FindCurrent(ctx context.Context, task runlane.TaskID, key string) (*runlane.Run, error) {
	return again(r.c, func() (*runlane.Run, error) { return r.Runs.FindCurrent(ctx, task, key) })
}

func (r runsCaller) Progress(ctx context.Context, id runlane.RunID) (*runlane.Progress, error) {
	return again(r.c, func() (*runlane.Progress, error) { return r.Runs.Progress(ctx, id) })
}

func (r runsCaller) Rerun(ctx context.Context, id runlane.RunID, o *core.ChangeOptions) (*runlane.Run, error) {
	return again(r.c, func() (*runlane.Run, error) { return r.Runs.Rerun(ctx, id, o) })
}

// Repeat returns the answer of the last try only: an earlier try whose answer was lost may have made the run.
func (r runsCaller) Repeat(
	ctx context.Context, id runlane.RunID, kind runlane.SourceType, o *core.ChangeOptions,
) (*runlane.TriggerResult, error) {
	return again(r.c, func() (*runlane.TriggerResult, error) { return r.Runs.Repeat(ctx, id, kind, o) })
}

func (r runsCaller) Retry(ctx context.Context, id runlane.RunID, o *core.ChangeOptions) (*runlane.Run, error) {
	return again(r.c, func() (*runlane.Run, error) { return r.Runs.Retry(ctx, id, o) })
}

// Cancel counts the refusal to cancel a cancelled run as success if the answer of an earlier try was lost.
func (r runsCaller) Cancel(ctx context.Context, id runlane.RunID, o *core.ChangeOptions) (*runlane.Run, error) {
	before, _ := r.c.s.faults.unheard()
	run, err := again(r.c, func() (*runlane.Run, error) { return r.Runs.Cancel(ctx, id, o) })
	if after, _ := r.c.s.faults.unheard(); runlane.CodeOf(err) != runlane.ErrValidationFailed || after == before {
		return run, err
	}
	if current, readErr := r.Get(ctx, id); readErr == nil && current.Status == runlane.StatusCancelled {
		return current, nil
	}
	return nil, err
}

// Resume counts the refusal to resume what does not wait any more as success if the answer of an earlier try was lost.
func (r runsCaller) Resume(ctx context.Context, id runlane.RunID, o *core.ChangeOptions) (*runlane.Run, error) {
	before, _ := r.c.s.faults.unheard()
	run, err := again(r.c, func() (*runlane.Run, error) { return r.Runs.Resume(ctx, id, o) })
	if after, _ := r.c.s.faults.unheard(); runlane.CodeOf(err) != runlane.ErrValidationFailed || after == before {
		return run, err
	}
	if current, readErr := r.Get(ctx, id); readErr == nil && current.Status == runlane.StatusQueued {
		return current, nil
	}
	return nil, err
}

func (r runsCaller) ResumeAll(ctx context.Context, o *core.BulkOptions) (*core.BulkResult, error) {
	return bulkAgain(r.c, o, func(o *core.BulkOptions) (*core.BulkResult, error) { return r.Runs.ResumeAll(ctx, o) },
		func(o *core.BulkOptions, at runlane.Cursor) { o.After = at })
}

func (r runsCaller) CancelAll(ctx context.Context, o *core.BulkOptions) (*core.BulkResult, error) {
	return bulkAgain(r.c, o, func(o *core.BulkOptions) (*core.BulkResult, error) { return r.Runs.CancelAll(ctx, o) },
		func(o *core.BulkOptions, at runlane.Cursor) { o.After = at })
}

func (r runsCaller) RerunAll(ctx context.Context, o *core.BulkOptions) (*core.BulkResult, error) {
	return bulkAgain(r.c, o, func(o *core.BulkOptions) (*core.BulkResult, error) { return r.Runs.RerunAll(ctx, o) },
		func(o *core.BulkOptions, at runlane.Cursor) { o.After = at })
}

func (r runsCaller) RetryAll(ctx context.Context, o *core.BulkOptions) (*core.BulkResult, error) {
	return bulkAgain(r.c, o, func(o *core.BulkOptions) (*core.BulkResult, error) { return r.Runs.RetryAll(ctx, o) },
		func(o *core.BulkOptions, at runlane.Cursor) { o.After = at })
}

func (r runsCaller) Prune(ctx context.Context, o *core.PruneOptions) (*core.BulkResult, error) {
	return bulkAgain(r.c, o, func(o *core.PruneOptions) (*core.BulkResult, error) { return r.Runs.Prune(ctx, o) },
		func(o *core.PruneOptions, at runlane.Cursor) { o.After = at })
}

// bulkAgain resumes where a call that failed stopped, and adds up what the calls did.
func bulkAgain[O any](
	c *caller, options *O, call func(*O) (*core.BulkResult, error), resume func(*O, runlane.Cursor),
) (*core.BulkResult, error) {
	result, err := call(options)
	if !c.s.faults.planned(err) {
		return result, err
	}
	resumed, total := *options, core.BulkResult{}
	for range repeats {
		if result != nil {
			total.Matched, total.Changed, total.Skipped = total.Matched+
				result.Matched, total.Changed+result.Changed, total.Skipped+result.Skipped
			total.Failed, total.Next = result.Failed, result.Next
		}
		if !c.s.faults.planned(err) {
			break
		}
		if result != nil && result.Next != "" {
			resume(&resumed, result.Next)
		}
		result, err = call(&resumed)
	}
	return &total, err
}

// Events resumes behind the last event.
func (r runsCaller) Events(
	ctx context.Context, id runlane.RunID, o *core.EventOptions,
) iter.Seq2[runlane.EventRecord, error] {
	resumed := core.EventOptions{}
	if o != nil {
		resumed = *o
	}
	return func(yield func(runlane.EventRecord, error) bool) {
		for range repeats {
			failed := false
			for record, err := range r.Runs.Events(ctx, id, &resumed) {
				if failed = r.c.s.faults.planned(err); failed {
					break
				}
				if !yield(record, err) {
					return
				}
				if err == nil {
					resumed.After = core.EventCursor(&record)
				}
			}
			if !failed {
				return
			}
		}
	}
}

// All starts again and leaves out the items that it has already yielded.
func (r runsCaller) All(ctx context.Context, o *core.ListOptions) iter.Seq2[runlane.RunSummary, error] {
	return walkAgain(r.c, func() iter.Seq2[runlane.RunSummary, error] { return r.Runs.All(ctx, o) })
}

// walkAgain repeats the walk until no planned fault hits it.
func walkAgain[T any](c *caller, walk func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		told := 0
		for range repeats {
			failed, n := false, 0
			for item, err := range walk() {
				if failed = c.s.faults.planned(err); failed {
					break
				}
				if n++; n <= told {
					continue
				}
				if told++; !yield(item, err) {
					return
				}
			}
			if !failed {
				return
			}
		}
	}
}

// deadLettersCaller repeats the calls of core.DeadLetters.
type deadLettersCaller struct {
	*core.DeadLetters

	c *caller
}

// DeadLetters is the view with repeating calls.
func (c *caller) DeadLetters() deadLettersCaller {
	return deadLettersCaller{c.Runtime.DeadLetters(), c}
}

func (d deadLettersCaller) List(ctx context.Context, o *core.ListOptions) (*runlane.Page[runlane.DeadLetter], error) {
	return again(d.c, func() (*runlane.Page[runlane.DeadLetter], error) { return d.DeadLetters.List(ctx, o) })
}

// Requeue counts the refusal to requeue twice as success if the answer of an earlier try was lost.
func (d deadLettersCaller) Requeue(ctx context.Context, id runlane.RunID, o *core.ChangeOptions) error {
	before, _ := d.c.s.faults.unheard()
	_, err := again(d.c, func() (struct{}, error) { return struct{}{}, d.DeadLetters.Requeue(ctx, id, o) })
	if after, _ := d.c.s.faults.unheard(); errors.Is(err, runlane.ErrValidationFailed) && after > before {
		return nil
	}
	return err
}

func (d deadLettersCaller) RequeueAll(ctx context.Context, o *core.BulkOptions) (*core.BulkResult, error) {
	return bulkAgain(
		d.c,
		o,
		func(o *core.BulkOptions) (*core.BulkResult, error) { return d.DeadLetters.RequeueAll(ctx, o) },
		func(o *core.BulkOptions, at runlane.Cursor) { o.After = at },
	)
}

// queuesCaller repeats the calls of core.Queues.
type queuesCaller struct {
	*core.Queues

	c *caller
}

// Queues is the view with repeating calls.
func (c *caller) Queues() queuesCaller { return queuesCaller{c.Runtime.Queues(), c} }

func (q queuesCaller) Stats(ctx context.Context, name runlane.QueueName) (*core.QueueStats, error) {
	return again(q.c, func() (*core.QueueStats, error) { return q.Queues.Stats(ctx, name) })
}

// keysCaller repeats the calls of core.IdempotencyKeys.
type keysCaller struct {
	*core.IdempotencyKeys

	c *caller
}

// IdempotencyKeys is the view with repeating calls.
func (c *caller) IdempotencyKeys() keysCaller { return keysCaller{c.Runtime.IdempotencyKeys(), c} }

// Reset counts "no owner" as success if the answer of an earlier try was lost: that try has reset the key.
func (k keysCaller) Reset(ctx context.Context, task runlane.TaskID, key string) error {
	before, _ := k.c.s.faults.unheard()
	_, err := again(k.c, func() (struct{}, error) { return struct{}{}, k.IdempotencyKeys.Reset(ctx, task, key) })
	if after, _ := k.c.s.faults.unheard(); errors.Is(err, runlane.ErrRunNotFound) && after > before {
		return nil
	}
	return err
}

// schedulesCaller repeats the calls of core.Schedules.
type schedulesCaller struct {
	*core.Schedules

	c *caller
}

// Schedules is the view with repeating calls.
func (c *caller) Schedules() schedulesCaller { return schedulesCaller{c.Runtime.Schedules(), c} }

func (s schedulesCaller) Get(ctx context.Context, id runlane.ScheduleID) (*core.ScheduleState, error) {
	return again(s.c, func() (*core.ScheduleState, error) { return s.Schedules.Get(ctx, id) })
}

func (s schedulesCaller) List(ctx context.Context) iter.Seq2[core.ScheduleState, error] {
	return walkAgain(s.c, func() iter.Seq2[core.ScheduleState, error] { return s.Schedules.List(ctx) })
}

func (s schedulesCaller) Occurrences(
	ctx context.Context, id runlane.ScheduleID, skippedOnly bool,
) iter.Seq2[runlane.Occurrence, error] {
	return walkAgain(s.c, func() iter.Seq2[runlane.Occurrence, error] {
		return s.Schedules.Occurrences(ctx, id, skippedOnly)
	})
}

func (s schedulesCaller) Pause(ctx context.Context, id runlane.ScheduleID, o *core.ChangeOptions) error {
	_, err := again(s.c, func() (struct{}, error) { return struct{}{}, s.Schedules.Pause(ctx, id, o) })
	return err
}

func (s schedulesCaller) Resume(ctx context.Context, id runlane.ScheduleID, o *core.ChangeOptions) error {
	_, err := again(s.c, func() (struct{}, error) { return struct{}{}, s.Schedules.Resume(ctx, id, o) })
	return err
}

func (s schedulesCaller) TriggerNow(
	ctx context.Context, id runlane.ScheduleID, o *core.ChangeOptions,
) (*runlane.Run, error) {
	return again(s.c, func() (*runlane.Run, error) { return s.Schedules.TriggerNow(ctx, id, o) })
}
