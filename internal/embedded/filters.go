package embedded

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// DueScope is the scope of a list of due runs. It excludes the time, which moves while a caller pages.
func DueScope(method string, q *lane.DueQuery) Scope {
	var parts []string
	for _, queue := range q.Queues {
		parts = append(parts, "queue", string(queue))
	}
	if q.Queues != nil && len(q.Queues) == 0 {
		parts = append(parts, "no queue")
	}
	for _, queue := range q.Without {
		parts = append(parts, "without", string(queue))
	}
	for _, queue := range q.Bounded {
		parts = append(parts, "bounded", string(queue.Name))
	}
	return NewScope(method, q.Environment, parts...)
}

// BoundedPolicy returns the query's policy for a queue, zero if the queue has no limit.
func BoundedPolicy(q *lane.DueQuery, name runlane.QueueName) runlane.Queue {
	for _, queue := range q.Bounded {
		if queue.Name == name {
			return queue
		}
	}
	return runlane.Queue{}
}

// CountUntil is up to when CountRuns counts runs that are queued, or waiting, as due.
func CountUntil(q *lane.CountQuery, queued bool) Millis {
	if queued {
		return At(q.QueuedAt)
	}
	return At(q.At)
}

// RunsScope is the scope of ListRuns.
func RunsScope(q *lane.RunQuery) Scope { return NewScope("ListRuns", q.Environment, q.Scope()) }

// JudgeListed judges a run of a list of runs. Finished runs come newest first, so the list ends at the first that ended
// before Since.
func JudgeListed(q *lane.RunQuery, r *runlane.RunSummary) Verdict {
	switch {
	case q.Matches(r):
		return Take
	case r.Status.Terminal() && !q.Since.IsZero() && r.FinishedAt.Before(q.Since):
		return Stop
	default:
		return Skip
	}
}

// EventsScope is the scope of ListRunEvents.
func EventsScope(q *lane.EventQuery) Scope {
	order := "ascending"
	if q.Descending {
		order = "descending"
	}
	return NewScope("ListRunEvents", q.Environment, string(q.RunID), order)
}

// RecordsScope is the scope of ListRecords.
func RecordsScope(q *lane.RecordQuery) Scope {
	return NewScope("ListRecords", q.Environment, string(q.RunID), fmt.Sprint(At(q.CreatedAt)), fmt.Sprint(q.Logs),
		q.From, q.Until)
}

// OccurrencesScope is the scope of ListScheduleOccurrences.
func OccurrencesScope(q *lane.OccurrenceQuery) Scope {
	return NewScope("ListScheduleOccurrences", q.Environment, string(q.ScheduleID), fmt.Sprint(q.SkippedOnly))
}

// EventID identifies an event, and the outbox row of a delivery request. Run IDs have no colon.
func EventID(id runlane.RunID, sequence int64) string {
	return string(id) + ":" + strconv.FormatInt(sequence, 10)
}

// ParseEventID is the inverse of EventID. It refuses another spelling of the number.
func ParseEventID(text string) (id runlane.RunID, sequence int64, ok bool) {
	run, number, ok := strings.Cut(text, ":")
	if !ok {
		return "", 0, false
	}
	sequence, err := strconv.ParseInt(number, 10, 64)
	return runlane.RunID(run), sequence, err == nil && strconv.FormatInt(sequence, 10) == number
}
