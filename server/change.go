package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

type reasonBody struct {
	Reason string `json:"reason" doc:"for people, at most 256 bytes; kept with the change"`
}

// by builds core's options. It checks limits here, so that any refusal by core is about state.
func (b *reasonBody) by(caller Access) (core.ChangeOptions, error) {
	if len(b.Reason) > runlane.MaxReasonBytes {
		return core.ChangeOptions{}, badInput("the reason has more than 256 bytes", "shorten it")
	}
	return core.ChangeOptions{Actor: caller.Actor, Reason: b.Reason}, nil
}

type changeInput struct {
	oneRun
	Body reasonBody `body:"json"`
}

// changeOne returns the changed run, or the new run that it made. Only a new run has an outcome.
type changeOne func(context.Context, *core.Runtime, runlane.RunID, *core.ChangeOptions) (*runlane.TriggerResult, error)

func changeHandler(one changeOne) func(context.Context, *call, *changeInput) (*reply, error) {
	return func(ctx context.Context, c *call, in *changeInput) (*reply, error) {
		options, err := in.Body.by(c.by)
		if err != nil {
			return nil, err
		}
		after, err := one(ctx, c.rt, in.Run, &options)
		if err != nil {
			return nil, refused(err)
		}
		done := shown.Change{Run: in.Run, Now: after.Run.Status, Outcome: after.Outcome}
		answered := object("change", &done)
		answered.run, answered.sequence = string(after.Run.ID), after.Run.EventSequence
		if after.Run.ID != in.Run {
			done.Made, answered.made = after.Run.ID, true
		}
		if after.Outcome == runlane.TriggerCreated {
			answered.status = http.StatusCreated
		}
		return answered, nil
	}
}

func cancelRun(
	ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
) (*runlane.TriggerResult, error) {
	run, err := rt.Runs().Cancel(ctx, id, o)
	return &runlane.TriggerResult{Run: run}, err
}

func resumeRun(
	ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
) (*runlane.TriggerResult, error) {
	run, err := rt.Runs().Resume(ctx, id, o)
	return &runlane.TriggerResult{Run: run}, err
}

func repeatRun(kind runlane.SourceType) changeOne {
	return func(
		ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
	) (*runlane.TriggerResult, error) {
		return rt.Runs().Repeat(ctx, id, kind, o)
	}
}

func requeueRun(
	ctx context.Context, rt *core.Runtime, id runlane.RunID, o *core.ChangeOptions,
) (*runlane.TriggerResult, error) {
	if err := rt.DeadLetters().Requeue(ctx, id, o); err != nil {
		return nil, err
	}
	run, err := rt.Runs().Get(ctx, id)
	return &runlane.TriggerResult{Run: run}, err
}

// bulkBody selects and changes all matching runs. It needs at least one filter, or all.
type bulkBody struct {
	reasonBody
	Queue    named[runlane.QueueName]  `json:"queue" doc:"runs of this queue"`
	Schedule named[runlane.ScheduleID] `json:"schedule" doc:"runs that this schedule made"`
	Source   named[runlane.RunID]      `json:"source" doc:"runs that repeat this one, or that its handler triggered"`
	Status   statusWords               `json:"status" doc:"statuses; active and finished stand for several"`
	Task     named[runlane.TaskID]     `json:"task" doc:"runs of this task"`
	Waiting  named[runlane.WaitingFor] `json:"waiting" doc:"suspended runs that wait for this"`

	FailureCode named[runlane.ErrorCode] `json:"failureCode" doc:"runs whose last failure has this code"`
	Since       time.Time                `json:"since" doc:"runs created from this time on"`
	Until       time.Time                `json:"until" doc:"runs created before this time"`

	All    bool           `json:"all" doc:"every run there is, in place of a filter"`
	After  runlane.Cursor `json:"after" doc:"the field next of the call before, with the same body"`
	Limit  int            `json:"limit" min:"0" max:"1000" doc:"runs in one call; 0 means 1,000"`
	DryRun bool           `json:"dryRun" doc:"count what matches, and change nothing"`
}

type bulkInput struct {
	Body bulkBody `body:"json" required:"true"`
}

// maxBulk is the largest number of runs in one call. With more, the answer could exceed the caller's timeout.
const maxBulk = 1000

func (b *bulkBody) built(caller Access) (*core.BulkOptions, error) {
	changes, err := b.by(caller)
	if err != nil {
		return nil, err
	}
	if b.Limit < 0 || b.Limit > maxBulk {
		return nil, badInput("limit is not from 1 to 1000", "go on with after")
	}
	o := &core.BulkOptions{
		ChangeOptions: changes,
		AllRuns:       b.All,
		After:         b.After,
		Cap:           b.Limit,
		DryRun:        b.DryRun,
		RunFilter: core.RunFilter{
			Queue:       b.Queue.ID,
			ScheduleID:  b.Schedule.ID,
			SourceRunID: b.Source.ID,
			TaskID:      b.Task.ID,
			Waiting:     b.Waiting.ID,

			FailureCode: b.FailureCode.ID,
			Since:       b.Since,
			Until:       b.Until,
		},
	}
	if o.Statuses, err = statusesOf(b.Status); err != nil {
		return nil, err
	}
	return o, nil
}

// statusWord is a status, or a word for several.
type statusWord string

// statusWords may be neither null nor empty: the filter would match more than was meant.
type statusWords []statusWord

func (w *statusWords) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*[]statusWord)(w)); err != nil || len(*w) == 0 {
		return badInput("the statuses are not a list of texts, or empty", "leave the field out, or name statuses")
	}
	return nil
}

func statusesOf(words statusWords) ([]runlane.Status, error) {
	if len(words) == 0 {
		return nil, nil
	}
	found, unknown := shown.Statuses(strings.Join(textsOf(words), ","))
	if unknown != nil {
		return nil, badInput(
			"there is no status \""+clip(*unknown)+"\"",
			"statuses are "+strings.Join(shown.StatusWords(), ", "),
		)
	}
	return found, nil
}

func textsOf[T ~string](words []T) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}

// bulkOutcome is the result of one bulk call, as docs/json.md describes it, with the errors of the runs that failed.
type bulkOutcome struct {
	shown.Bulk
	Errors []runProblem `json:"errors,omitempty"` // the first 100
}

type runProblem struct {
	Run runlane.RunID `json:"runId"`
	problemFields
}

// problemFields are the fields of a problem except its run ID, which may name another run.
type problemFields struct {
	Detail    string               `json:"detail"`
	Code      string               `json:"code"`
	Conflict  runlane.ConflictKind `json:"conflict,omitempty"`
	Hint      string               `json:"hint,omitempty"`
	Retryable bool                 `json:"retryable"`
}

func outcomeOf(verb string, dry bool, result *core.BulkResult) *bulkOutcome {
	outcome := &bulkOutcome{Bulk: shown.Bulk{
		Verb:    verb,
		DryRun:  dry,
		Matched: result.Matched,
		Changed: result.Changed,
		Skipped: result.Skipped,
		Failed:  len(result.Failed),
		Next:    result.Next,
	}}
	for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
		p := problemOf(result.Failed[id])
		outcome.Errors = append(outcome.Errors, runProblem{Run: id, problemFields: problemFields{
			Detail:    p.Detail,
			Code:      p.Code,
			Conflict:  p.Conflict,
			Hint:      p.Hint,
			Retryable: p.Retryable,
		}})
	}
	return outcome
}

// bulkHandler wraps an operation on many runs. On an error after runs were changed it answers with the counts; the next
// call repeats the runs in progress, which is harmless.
func bulkHandler(
	verb string, all func(context.Context, *core.Runtime, *core.BulkOptions) (*core.BulkResult, error),
) func(context.Context, *call, *bulkInput) (*reply, error) {
	return func(ctx context.Context, c *call, in *bulkInput) (*reply, error) {
		options, err := in.Body.built(c.by)
		if err != nil {
			return nil, err
		}
		result, err := all(ctx, c.rt, options)
		if err != nil && (result == nil || result.Matched == 0 || result.Next == "") {
			return nil, err
		}
		return object("bulk", outcomeOf(verb, in.Body.DryRun, result)), nil
	}
}

func cancelAll(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
	return rt.Runs().CancelAll(ctx, o)
}

func resumeAll(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
	return rt.Runs().ResumeAll(ctx, o)
}

func retryAll(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
	return rt.Runs().RetryAll(ctx, o)
}

func rerunAll(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
	return rt.Runs().RerunAll(ctx, o)
}

func requeueAll(ctx context.Context, rt *core.Runtime, o *core.BulkOptions) (*core.BulkResult, error) {
	return rt.DeadLetters().RequeueAll(ctx, o)
}

type pruneBody struct {
	OlderThan     *span          `json:"olderThan" required:"true" doc:"since they ended, like 90d; 0s: all that did"`
	Status        statusWords    `json:"status" doc:"statuses of finished runs; all three unless given"`
	ReleaseOwners bool           `json:"releaseOwners" doc:"also runs that retain an idempotency key"`
	After         runlane.Cursor `json:"after" doc:"the field next of the call before, with the same body"`
	Limit         int            `json:"limit" min:"0" max:"500" doc:"runs in one call; 0 means 100"`
	DryRun        bool           `json:"dryRun" doc:"count what would be removed, and remove nothing"`
}

type pruneInput struct {
	Body pruneBody `body:"json" required:"true"`
}

func pruneRuns(ctx context.Context, c *call, in *pruneInput) (*reply, error) {
	if in.Body.OlderThan == nil || *in.Body.OlderThan < 0 {
		return nil, badInput(
			"olderThan is missing, or below 0",
			"give a duration like 90d, or 0s for all runs that have ended",
		)
	}
	statuses, err := statusesOf(in.Body.Status)
	if err != nil {
		return nil, err
	}
	options := &core.PruneOptions{
		OlderThan:     max(1, time.Duration(*in.Body.OlderThan)), // core treats 0 as unset
		Statuses:      statuses,
		After:         in.Body.After,
		DryRun:        in.Body.DryRun,
		Limit:         in.Body.Limit,
		ReleaseOwners: in.Body.ReleaseOwners,
	}
	result, err := c.rt.Runs().Prune(ctx, options)
	if err != nil && (result == nil || result.Matched == 0 || result.Next == "") {
		return nil, err
	}
	return object("bulk", outcomeOf("remove", in.Body.DryRun, result)), nil
}
