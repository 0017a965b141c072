package lane

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// RunsQuery asks for given runs.
type RunsQuery struct {
	// Environment holds the runs.
	Environment runlane.Environment
	// IDs are in the order of the answer; repeats are answered repeatedly.
	IDs []runlane.RunID
	// WithoutPayload leaves payload and output out, which maintenance does not need.
	WithoutPayload bool
}

// InspectQuery asks for one run and what surrounds it.
type InspectQuery struct {
	RunKey
	// Queue is the policy in force now.
	Queue runlane.Queue
}

// Inspection is a run, its latest delivery, and who holds the slots of its partition.
type Inspection struct {
	// Run is the run as GetRun returns it.
	Run *runlane.Run
	// Delivery is nil when none was requested yet, or the latest was superseded.
	Delivery *OutboxMessage
	// Holders are the runs that hold slots, in bounded queues.
	Holders []runlane.RunID
	// RedeliverAt is when the published wakeup of a queued run counts as lost. Zero for every other run, and where the
	// storage does not find lost wakeups.
	RedeliverAt time.Time
}

// PageQuery is what every list shares.
type PageQuery struct {
	// Environment is the only one that the list sees.
	Environment runlane.Environment
	// Limit 0 means runlane.DefaultPageLimit; at most runlane.MaxPageLimit.
	Limit int
	// After resumes behind the page that returned it.
	After runlane.Cursor
}

// PageLimit is the limit with its default; a negative one, or one above runlane.MaxPageLimit, is
// runlane.ErrValidationFailed.
func (q *PageQuery) PageLimit() (int, error) {
	switch {
	case q.Limit == 0:
		return runlane.DefaultPageLimit, nil
	case q.Limit < 0 || q.Limit > runlane.MaxPageLimit:
		return 0, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("limit is %d", q.Limit),
			Hint: fmt.Sprintf("ask for 1 to %d, or 0 for %d", runlane.MaxPageLimit, runlane.DefaultPageLimit),
		}
	default:
		return q.Limit, nil
	}
}

// DueQuery is what the scans share.
type DueQuery struct {
	PageQuery
	// At is the instant by which due-ness is judged. It may lie ahead, to find what comes due.
	At time.Time
	// Patience allows a scan to leave runs out and never obliges it to. The conformance suite passes none.
	Patience Patience
	// Queues filters; nil means all.
	Queues []runlane.QueueName
	// Without excludes queues, even those that Queues names. A scan reads none of their runs, however many are due.
	Without []runlane.QueueName
	// Bounded holds the policies of bounded queues.
	Bounded []runlane.Queue
	// ConcurrencyKey asks [Storage].ListRunsNeedingDispatch for the runs of one key, "" for those without a key, nil
	// for all. A caller that frees a slot uses it to offer the slot to the next run. Other scans ignore it. With a key
	//
	//   - the page has no cursor;
	//   - it may leave out runs that no scan has found waiting for a slot yet;
	//   - with a Limit of 1 and several free slots, it may have any run that could get one. Callers that ask at the
	//     same time should get different runs.
	ConcurrencyKey *string
}

// Wants reports a queue whose runs are asked for.
func (q *DueQuery) Wants(queue runlane.QueueName) bool {
	return (q.Queues == nil || slices.Contains(q.Queues, queue)) && !slices.Contains(q.Without, queue)
}

// Patience lets a scan leave out runs that became due shortly before At: a publisher or worker is still expected to
// handle them.
type Patience struct {
	// Queued is for queued runs whose wakeup is on its way, scheduled ones whose row was published, and runs claimed
	// from either.
	Queued time.Duration
	// ShortWait is for waits of at most 15 minutes on a queue with native delay.
	ShortWait time.Duration
	// Undelayed are the queues without native delay: no wakeup is sent when a wait there ends, so ShortWait does not
	// apply.
	Undelayed []runlane.QueueName
}

// RunRef is a run in a scan: enough to choose, never its payload.
type RunRef struct {
	RunKey
	// Queue is the run's.
	Queue runlane.QueueName
	// ConcurrencyKey is the run's, for choosing fairly.
	ConcurrencyKey string
	// Status is as the scan saw it.
	Status runlane.Status
	// AvailableAt is when it became due by the scan's predicate.
	AvailableAt time.Time
	// Sequence is as the scan saw it; read the run again before a claim.
	Sequence int64
	// OutboxID is set by ListRunsNeedingDelivery for a scheduled run whose row should be published instead.
	OutboxID string
}

// RunQuery filters runs. Zero fields match all.
type RunQuery struct {
	PageQuery
	// Statuses match any of these.
	Statuses []runlane.Status
	// TaskID matches runs of the task.
	TaskID runlane.TaskID
	// Queue matches runs of the queue.
	Queue runlane.QueueName
	// ScheduleID matches runs made by the schedule.
	ScheduleID runlane.ScheduleID
	// SourceRunID finds reruns, manual retries and follow-ups of a run.
	SourceRunID runlane.RunID
	// Waiting matches suspended runs whose wait has this kind.
	Waiting runlane.WaitingFor
}

// EventQuery pages one run's history.
type EventQuery struct {
	PageQuery
	// RunID names the run; required.
	RunID runlane.RunID
	// Descending lists the newest first.
	Descending bool
}

// PruneCommand selects terminal runs to remove.
type PruneCommand struct {
	PageQuery // Limit 0 means runlane.DefaultPruneLimit
	// Statuses are terminal ones; an active one is runlane.ErrValidationFailed.
	Statuses []runlane.Status
	// OlderThan is exclusive: a run that finished at this instant stays.
	OlderThan time.Time
	// ReleaseOwners also removes runs that still retain an idempotency owner; otherwise those are skipped.
	ReleaseOwners bool
}

// Terminal returns the statuses that the command removes, each once, in the order of their declaration. A command that
// names none removes all terminal ones. One without OlderThan or with an active status is runlane.ErrValidationFailed.
func (c *PruneCommand) Terminal() ([]runlane.Status, error) {
	if c.OlderThan.IsZero() {
		return nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "pruning needs an instant that says what is old",
			Hint: "set OlderThan; runs that finished before it are removed",
		}
	}
	for _, status := range c.Statuses {
		if !status.Terminal() {
			return nil, &runlane.Error{
				Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("runs that are %q cannot be pruned", status),
				Hint: "prune succeeded, failed and cancelled runs; cancel active ones first",
			}
		}
	}
	terminal := runlane.TerminalStatuses()
	if len(c.Statuses) == 0 {
		return terminal, nil
	}
	return slices.DeleteFunc(terminal, func(s runlane.Status) bool { return !slices.Contains(c.Statuses, s) }), nil
}

// PruneLimit is how many runs one call removes at most: Limit, or runlane.DefaultPruneLimit where it is 0.
func (c *PruneCommand) PruneLimit() (int, error) {
	page := PageQuery{Limit: cmp.Or(c.Limit, runlane.DefaultPruneLimit)}
	return page.PageLimit()
}

// PruneProgress counts one call. Next is empty when nothing is left.
type PruneProgress struct {
	// Pruned counts runs removed, Skipped those left because they retain an owner.
	Pruned, Skipped int
	Next            runlane.Cursor
}
