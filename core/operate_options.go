package core

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// RunFilter selects runs for lists and bulk calls. Zero fields match all.
type RunFilter struct {
	// Queue matches runs of the queue.
	Queue runlane.QueueName
	// ScheduleID matches runs that the schedule made.
	ScheduleID runlane.ScheduleID
	// SourceRunID matches reruns, manual retries and follow-ups of the run.
	SourceRunID runlane.RunID
	// Statuses match any of these. nil matches all statuses that the call allows.
	Statuses []runlane.Status
	// TaskID matches runs of the task.
	TaskID runlane.TaskID
	// Waiting matches suspended runs that wait for this kind. Finished runs never match.
	Waiting runlane.WaitingFor
	// FailureCode matches runs whose last failure has this code. It has no index: a page reads on through the runs that
	// the other filters select, and may be short.
	FailureCode runlane.ErrorCode
	// Since and Until match runs created from Since on, and before Until. A zero time is no bound.
	Since, Until time.Time
}

// ListOptions select runs and a page. nil means all runs, active ones first by their next need for attention, 50 a
// page.
type ListOptions struct {
	RunFilter
	// After continues after the page that returned it as Next, with the same filter.
	After runlane.Cursor
	// Limit is the page size. 0 means runlane.DefaultPageLimit; at most runlane.MaxPageLimit.
	Limit int
}

// ChangeOptions of calls that change something. nil means runlane.OperatorActor and no reason.
type ChangeOptions struct {
	// Actor is kept with the event. The zero value means runlane.OperatorActor.
	Actor runlane.Actor
	// Reason is a text for people, at most runlane.MaxReasonBytes. Each call documents where it is kept.
	Reason string
}

// BulkOptions of calls that change many runs. They need a filter or AllRuns.
type BulkOptions struct {
	ChangeOptions
	RunFilter
	// AllRuns allows an empty filter.
	AllRuns bool
	// After continues after the call that returned it as Next, with the same filter.
	After runlane.Cursor
	// Cap limits the matching runs of one call. 0 means 1,000.
	Cap int
	// DryRun counts the matching runs and changes nothing.
	DryRun bool
}

// PruneOptions of [Runs.Prune].
type PruneOptions struct {
	// OlderThan is the minimum time since a run's end. Required.
	OlderThan time.Duration
	// Statuses are terminal statuses. nil means all three.
	Statuses []runlane.Status
	// After continues after the call that returned it as Next, with the same options.
	After runlane.Cursor
	// DryRun counts the runs to remove and removes nothing.
	DryRun bool
	// Limit is the maximum number of runs removed by one call. 0 means runlane.DefaultPruneLimit; at most
	// runlane.MaxPageLimit.
	Limit int
	// ReleaseOwners also removes runs that still hold an idempotency key, which frees the key. Otherwise they are
	// skipped.
	ReleaseOwners bool
}

// BulkResult counts one call. Each matching run is changed, skipped or failed; a dry run only counts matches.
type BulkResult struct {
	// Matched counts the runs that matched.
	Matched int `json:"matched"`
	// Changed counts the changed runs.
	Changed int `json:"changed"`
	// Skipped counts the runs that changed meanwhile or needed no change.
	Skipped int `json:"skipped"`
	// Failed has the errors of failed runs, the first 100. nil when there are none.
	Failed map[runlane.RunID]error `json:"-"`
	// Next continues. Empty at the end.
	Next runlane.Cursor `json:"next,omitempty"`
}

const (
	// defaultCap is the default of BulkOptions.Cap.
	defaultCap = 1000
	// maxFailed limits BulkResult.Failed.
	maxFailed = 100
	// metaReason is the meta key of an operator's reason, in an event and in a run created by the call.
	metaReason = "runlane.reason"
)

var (
	// cancellable omits cancellation_requested. A filter may name it; such runs are skipped.
	cancellable = slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool {
		return s.Terminal() || s == runlane.StatusCancellationRequested
	})
	ownedStatuses    = []runlane.Status{runlane.StatusRunning, runlane.StatusCancellationRequested}
	activeStatuses   = append(slices.Clone(cancellable), runlane.StatusCancellationRequested)
	terminalStatuses = slices.DeleteFunc(runlane.Statuses(), runlane.Status.Active)
	failedStatuses   = []runlane.Status{runlane.StatusFailed}
)

// check names the option in its error. what is the name of the options' type.
func (f *RunFilter) check(what string) error {
	for _, id := range [...]struct {
		option, value string
		validate      func() error
	}{
		{"Queue", string(f.Queue), f.Queue.Validate},
		{"ScheduleID", string(f.ScheduleID), f.ScheduleID.Validate},
		{"SourceRunID", string(f.SourceRunID), f.SourceRunID.Validate},
		{"TaskID", string(f.TaskID), f.TaskID.Validate},
	} {
		if id.value == "" {
			continue
		}
		if err := id.validate(); err != nil {
			return namedOption(what+"."+id.option, err)
		}
	}
	for _, status := range f.Statuses {
		if !status.Known() {
			return invalidInput(
				fmt.Sprintf("use some of %q", runlane.Statuses()),
				"%s.Statuses has the unknown status %q",
				what,
				status,
			)
		}
	}
	if f.Waiting != "" && !slices.Contains(runlane.WaitingKinds(), f.Waiting) {
		return invalidInput(
			fmt.Sprintf("use one of %q", runlane.WaitingKinds()),
			"%s.Waiting is the unknown kind %q",
			what,
			f.Waiting,
		)
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return invalidInput("let Since be before Until", "%s.Since is not before Until", what)
	}
	return nil
}

func (f *RunFilter) empty() bool {
	return f.Queue == "" && f.ScheduleID == "" && f.SourceRunID == "" && f.TaskID == "" && len(f.Statuses) == 0 &&
		f.Waiting == "" && f.FailureCode == "" && f.Since.IsZero() && f.Until.IsZero()
}

// query is what the filter asks of a storage.
func (f *RunFilter) query() *lane.RunQuery {
	return &lane.RunQuery{
		Statuses:    f.Statuses,
		TaskID:      f.TaskID,
		Queue:       f.Queue,
		ScheduleID:  f.ScheduleID,
		SourceRunID: f.SourceRunID,
		Waiting:     f.Waiting,
		FailureCode: f.FailureCode,
		Since:       f.Since,
		Until:       f.Until,
	}
}

// matches filters in this package, for lists that have no such filter in the storage.
func (f *RunFilter) matches(run *runlane.Run) bool {
	summary := run.Summary()
	return f.query().Matches(&summary)
}

func (f *RunFilter) scope() string { return f.query().Scope() }

func (o *ListOptions) check(what string) error {
	return firstError(o.RunFilter.check(what), checkLimit(what+".Limit", o.Limit, runlane.DefaultPageLimit))
}

func checkLimit(option string, limit, otherwise int) error {
	if limit < 0 || limit > runlane.MaxPageLimit {
		return invalidInput(
			fmt.Sprintf("use 0 for %d, or 1 to %d", otherwise, runlane.MaxPageLimit),
			"%s is %d",
			option,
			limit,
		)
	}
	return nil
}

// settle checks the options and returns the actor and the reason. nil means the defaults.
func (o *ChangeOptions) settle(what string) (actor runlane.Actor, reason string, err error) {
	if o == nil {
		return runlane.OperatorActor, "", nil
	}
	actor = o.Actor
	switch actor.Type {
	case runlane.ActorSystem, runlane.ActorOperator, runlane.ActorSchedule, runlane.ActorWorker:
		if err := runlane.ValidateKey("actor id", actor.ID); err != nil {
			return actor, "", namedOption(what+".Actor", err)
		}
	case "":
		if actor.ID != "" {
			return actor, "", invalidInput(
				"set its Type, to runlane.ActorOperator for a person",
				"%s.Actor has an id and no type",
				what,
			)
		}
		actor = runlane.OperatorActor
	default:
		return actor, "", invalidInput(
			"use one of the runlane.Actor… types",
			"%s.Actor has the unknown type %q",
			what,
			actor.Type,
		)
	}
	switch {
	case len(o.Reason) > runlane.MaxReasonBytes:
		err = invalidInput(
			fmt.Sprintf("use at most %d bytes", runlane.MaxReasonBytes),
			"%s.Reason has %d bytes",
			what,
			len(o.Reason),
		)
	case !utf8.ValidString(o.Reason):
		err = invalidInput("use text", "%s.Reason is not valid UTF-8", what)
	}
	return actor, o.Reason, err
}

// check validates the options of bulk calls. allowed are the statuses that the call can change.
func (o *BulkOptions) check(allowed []runlane.Status) error {
	const what = "BulkOptions"
	if err := o.RunFilter.check(what); err != nil {
		return err
	}
	for _, status := range o.Statuses {
		if !slices.Contains(allowed, status) {
			return invalidInput(fmt.Sprintf("use some of %q, or none for all of them", allowed),
				"%s.Statuses has %q, which this call does not take", what, status)
		}
	}
	switch empty := o.empty(); {
	case empty && !o.AllRuns:
		return invalidInput("set a field of the filter, or AllRuns to mean every run", "%s has no filter", what)
	case !empty && o.AllRuns:
		return invalidInput("clear AllRuns, or the filter", "%s.AllRuns is set together with a filter", what)
	case o.Cap < 0:
		return invalidInput(fmt.Sprintf("use 0 for %d, or a number of runs", defaultCap), "%s.Cap is %d", what, o.Cap)
	}
	_, _, err := o.settle(what)
	return err
}

func (o *PruneOptions) check() error {
	const what = "PruneOptions"
	switch {
	case o == nil || o.OlderThan == 0:
		return invalidInput(
			"set the least time since a run's end, for example 30 * 24 * time.Hour",
			"%s.OlderThan is not set",
			what,
		)
	case o.OlderThan < 0:
		return invalidInput("use more than 0", "%s.OlderThan is %s", what, o.OlderThan)
	}
	for _, status := range o.Statuses {
		if !status.Terminal() {
			return invalidInput(
				"use succeeded, failed or cancelled; cancel active runs first",
				"%s.Statuses has %q",
				what,
				status,
			)
		}
	}
	return checkLimit(what+".Limit", o.Limit, runlane.DefaultPruneLimit)
}
