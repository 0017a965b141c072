package lanetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Reads: all filters have to match. Rows that do not match lie before, between and after
// those that do.
func listFilters(_ *testing.T, b *bundle) {
	type made struct {
		o   RunOptions
		end runlane.Status // "": it stays queued
	}
	scheduled := runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon}
	rerun := runlane.Source{Type: runlane.SourceRerun, RunID: "run_before"}
	var runs []*runlane.Run
	for i, m := range []made{
		{RunOptions{TaskID: "task.a", Queue: "alpha"}, ""},
		{RunOptions{TaskID: "task.b", Queue: "alpha", Source: scheduled}, ""},
		{RunOptions{TaskID: "task.a", Queue: "beta", Source: rerun}, ""},
		{RunOptions{TaskID: "task.b", Queue: "beta"}, ""},
		{RunOptions{TaskID: "task.a", Queue: "alpha", Source: scheduled}, runlane.StatusSucceeded},
		{RunOptions{TaskID: "task.b", Queue: "alpha", Source: rerun}, runlane.StatusFailed},
		{RunOptions{TaskID: "task.a", Queue: "beta"}, runlane.StatusCancelled},
		{RunOptions{TaskID: "task.b", Queue: "beta", Source: scheduled}, runlane.StatusSucceeded},
	} {
		at := noon.Add(time.Duration(i) * time.Second)
		run := b.create(at, m.o)
		if m.end != "" {
			run = b.end(run, at, m.end)
		}
		runs = append(runs, run)
	}
	failed := runs[5].Failure.Code
	queries := []lane.RunQuery{
		{TaskID: "task.a"},
		{Queue: "beta"},
		{ScheduleID: "nightly"},
		{SourceRunID: "run_before"},
		{Statuses: []runlane.Status{runlane.StatusQueued}},
		{Statuses: []runlane.Status{runlane.StatusSucceeded}},
		{Statuses: []runlane.Status{runlane.StatusFailed, runlane.StatusQueued}},
		{TaskID: "task.a", Queue: "alpha"},
		{TaskID: "task.b", ScheduleID: "nightly"},
		{Queue: "alpha", SourceRunID: "run_before"},
		{
			TaskID:     "task.b",
			Queue:      "beta",
			ScheduleID: "nightly",
			Statuses:   []runlane.Status{runlane.StatusSucceeded, runlane.StatusQueued},
		},
		{TaskID: "task.a", SourceRunID: "run_before", Statuses: []runlane.Status{runlane.StatusFailed}},
		{FailureCode: failed},
		{FailureCode: "another"},
		{Since: noon.Add(2 * time.Second)},
		{Until: noon.Add(6 * time.Second)},
		{Since: noon.Add(time.Second), Until: noon.Add(7 * time.Second), TaskID: "task.b"},
		{Since: noon.Add(time.Hour)},
		{TaskID: "task.c"},
		{ScheduleID: "night"},
		{SourceRunID: "run_befor"},
	}
	for _, query := range queries {
		var want []runlane.RunID // active ones by when they are due, then finished ones, newest first
		for _, run := range runs[:4] {
			if matches(&query, run) {
				want = append(want, run.ID)
			}
		}
		for i := len(runs) - 1; i >= 4; i-- {
			if matches(&query, runs[i]) {
				want = append(want, runs[i].ID)
			}
		}
		for _, limit := range []int{1, 2, 3, 0} {
			q := query
			q.PageQuery = lane.PageQuery{Environment: b.env, Limit: limit}
			b.eventually(func() string {
				if d := difference(want, b.listRuns(&q)); d != "" {
					return fmt.Sprintf("%+v (-want +got):\n%s", q, d)
				}
				return ""
			})
		}
	}
}

// matches is the simplest form of the query's filters.
func matches(q *lane.RunQuery, run *runlane.Run) bool {
	status := len(q.Statuses) == 0
	for _, s := range q.Statuses {
		status = status || s == run.Status
	}
	return status && (q.TaskID == "" || q.TaskID == run.TaskID) && (q.Queue == "" || q.Queue == run.Queue) &&
		(q.ScheduleID == "" || q.ScheduleID == run.Source.ScheduleID) &&
		(q.SourceRunID == "" || q.SourceRunID == run.Source.RunID) &&
		(q.FailureCode == "" || q.FailureCode == run.Failure.Code) &&
		!run.CreatedAt.Before(q.Since) && (q.Until.IsZero() || run.CreatedAt.Before(q.Until))
}

// Runs that are due, or were finished, at one and the same instant have an order as well, at every size of a page.
func listStable(t *testing.T, b *bundle) {
	for range 4 {
		b.create(noon, RunOptions{})
		b.push(b.create(noon, RunOptions{}), noon, &runlane.RunCancelled{})
	}
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
	b.eventually(func() string { return difference(8, len(b.listRuns(q))) })
	first := b.listRuns(q)
	for limit := 1; limit <= len(first); limit++ {
		q.Limit = limit
		equal(t, fmt.Sprint("order at page size ", limit), first, b.listRuns(q))
	}
}
