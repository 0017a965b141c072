package lane

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

// RunsQuery asks for runs of an Environment by their IDs, in that order and with its repeats.
type RunsQuery struct {
	Environment runlane.Environment
	IDs         []runlane.RunID
	// WithoutPayload omits payload and output.
	WithoutPayload bool
}

// InspectQuery asks for one run and its surroundings. Queue is the current policy.
type InspectQuery struct {
	RunKey
	Queue runlane.Queue
}

// Inspection is a Run as GetRun returns it, with its latest delivery and the holders of its partition's slots.
type Inspection struct {
	Run *runlane.Run
	// Delivery is nil if none was requested yet, or the latest was superseded.
	Delivery *OutboxMessage
	// Holders are the runs with slots, in bounded queues.
	Holders []runlane.RunID
	// RedeliverAt is when the published wakeup of a queued run counts as lost. Zero for other runs, and without
	// FindsLostWakeups.
	RedeliverAt time.Time
}

// PageQuery is the common part of every list of an Environment.
type PageQuery struct {
	Environment runlane.Environment
	// Limit 0 means runlane.DefaultPageLimit; at most runlane.MaxPageLimit.
	Limit int
	// After is the Next of the page before.
	After runlane.Cursor
}

// PageLimit returns the limit with its default. A negative one, or one above runlane.MaxPageLimit, is
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

// DueQuery is the common part of the scans.
type DueQuery struct {
	PageQuery
	// At is the time for the due check. It may be in the future, to find runs that become due.
	At time.Time
	// Patience allows a scan to omit runs but never requires it. The conformance suite passes none.
	Patience Patience
	// Queues filters; nil means all.
	Queues []runlane.QueueName
	// Without excludes queues, even ones in Queues. A scan reads none of their runs, however many are due.
	Without []runlane.QueueName
	// Bounded holds the policies of bounded queues.
	Bounded []runlane.Queue
	// ConcurrencyKey limits [Storage].ListRunsNeedingDispatch to the runs of one key, "" to runs without a key; nil
	// means all. A caller that frees a slot uses it to offer the slot to the next run. Other scans ignore it. With a
	// key
	//
	//   - the page has no cursor;
	//   - it may omit runs that no scan has found waiting for a slot yet;
	//   - with a Limit of 1 and several free slots, it may contain any run that could get one. Concurrent callers
	//     should get different runs.
	ConcurrencyKey *string
	// Round is of scans of one round of maintenance; nil means none.
	Round *Round
}

// Round is one round of maintenance: a few scans that follow each other closely. A storage may read for all of them what
// it reads for the first, but must show a round what the storage itself wrote meanwhile.
type Round struct{ _ byte } // not empty: each has its own address

// Wants reports whether the query includes runs of the queue.
func (q *DueQuery) Wants(queue runlane.QueueName) bool {
	return (q.Queues == nil || slices.Contains(q.Queues, queue)) && !slices.Contains(q.Without, queue)
}

// Patience lets a scan omit runs that became due shortly before At, because a publisher or worker should still handle
// them.
type Patience struct {
	// Queued is for queued runs with a wakeup on its way, scheduled ones with a published row, and runs claimed from
	// either.
	Queued time.Duration
	// ShortWait is for waits of at most 15 minutes on a queue with native delay.
	ShortWait time.Duration
	// Undelayed lists the queues without native delay: no wakeup is sent when a wait ends there, so ShortWait does not
	// apply.
	Undelayed []runlane.QueueName
}

// RunRef is a run in a scan, with its Queue and ConcurrencyKey for a fair choice, but never its payload. Status and
// Sequence may be stale: read the run again before a claim.
type RunRef struct {
	RunKey
	Queue          runlane.QueueName
	ConcurrencyKey string
	Status         runlane.Status
	// AvailableAt is when it became due by the scan's predicate.
	AvailableAt time.Time
	Sequence    int64
	// OutboxID is set by ListRunsNeedingDelivery for a scheduled run with a row to publish instead.
	OutboxID string
}

// RunQuery filters runs by TaskID, Queue, the ScheduleID of the schedule that made them, and the fields below. Zero
// fields match all.
type RunQuery struct {
	PageQuery
	// Statuses matches runs with any of these.
	Statuses   []runlane.Status
	TaskID     runlane.TaskID
	Queue      runlane.QueueName
	ScheduleID runlane.ScheduleID
	// SourceRunID finds reruns, manual retries and follow-ups of a run.
	SourceRunID runlane.RunID
	// Waiting matches suspended runs with a wait of this kind.
	Waiting runlane.WaitingFor
	// FailureCode matches runs whose last failure has this code.
	FailureCode runlane.ErrorCode
	// Since and Until match runs created from Since on, and before Until. No run finishes before Since that was created
	// from then on, so a list of finished runs, newest first, ends there.
	Since, Until time.Time
}

// Matches reports whether the query selects the run.
func (q *RunQuery) Matches(r *runlane.RunSummary) bool {
	return (len(q.Statuses) == 0 || slices.Contains(q.Statuses, r.Status)) &&
		(q.TaskID == "" || q.TaskID == r.TaskID) &&
		(q.Queue == "" || q.Queue == r.Queue) &&
		(q.ScheduleID == "" || q.ScheduleID == r.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == r.Source.RunID) &&
		(q.Waiting == "" || r.Waiting.Has(q.Waiting)) &&
		(q.FailureCode == "" || q.FailureCode == r.FailureCode) &&
		(q.Since.IsZero() || !r.CreatedAt.Before(q.Since)) &&
		(q.Until.IsZero() || r.CreatedAt.Before(q.Until))
}

// Scope is a text that differs for queries with other filters, for cursors. Since and Until are no part of it: a caller
// who asks for the last two hours means other instants with the next page.
func (q *RunQuery) Scope() string {
	return fmt.Sprintf("runs %s %q %q %q %q %q %q %q", q.Environment.Name(), q.Statuses, q.TaskID, q.Queue, q.ScheduleID,
		q.SourceRunID, q.Waiting, q.FailureCode)
}

// EventQuery pages one run's history. RunID is required. Descending lists the newest first.
type EventQuery struct {
	PageQuery
	RunID      runlane.RunID
	Descending bool
}

// PruneCommand selects terminal runs to remove.
type PruneCommand struct {
	PageQuery // Limit 0 means runlane.DefaultPruneLimit
	// Statuses are terminal; an active one is runlane.ErrValidationFailed.
	Statuses []runlane.Status
	// OlderThan is exclusive: a run that finished at this instant stays.
	OlderThan time.Time
	// ReleaseOwners also removes runs that still retain an idempotency owner; otherwise they are skipped.
	ReleaseOwners bool
}

// Terminal returns the statuses to remove, each once, in the order of their declaration; without Statuses, all terminal
// ones. A command without OlderThan or with an active status is runlane.ErrValidationFailed.
func (c *PruneCommand) Terminal() ([]runlane.Status, error) {
	if c.OlderThan.IsZero() {
		return nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "pruning needs OlderThan",
			Hint: "set it; runs that finished before it are removed",
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

// PruneLimit returns how many runs one call may remove: Limit, or runlane.DefaultPruneLimit if it is 0.
func (c *PruneCommand) PruneLimit() (int, error) {
	page := PageQuery{Limit: cmp.Or(c.Limit, runlane.DefaultPruneLimit)}
	return page.PageLimit()
}

// PruneProgress counts the Pruned runs of one call, and the Skipped ones, which retain an owner. Next is empty at the
// end.
type PruneProgress struct {
	Pruned, Skipped int
	Next            runlane.Cursor
	// Removed are the pruned runs. A storage that fails halfway returns them with its error, if it knows them.
	Removed []RunInstance
}
