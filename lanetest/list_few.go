package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// fewAmong is how many other runs are in each state: more than a page of an embedded lane looks at.
const fewAmong = 1100

// The first page of each list has the few runs that match, among however many others.
func listFirstPageHasTheFew(t *testing.T, b *bundle) {
	t.Helper()
	retry := noon.Add(time.Minute)
	for i := range fewAmong {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		b.create(at, RunOptions{})
		b.finished(at, runlane.StatusSucceeded, RunOptions{})
		run := b.running(at, retry, RunOptions{})
		b.push(run, at, Retried(run, retry))
	}
	later, before := noon.Add(time.Hour), noon.Add(-time.Hour)
	ends := later.Add(time.Hour)
	other := RunOptions{TaskID: "task.other", Queue: "other"}
	rerun := RunOptions{Source: runlane.Source{Type: runlane.SourceRerun, RunID: "run_before"}}
	nightly := RunOptions{Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon}}
	failed := b.finished(before, runlane.StatusFailed, RunOptions{})
	running := b.running(later, ends, RunOptions{}).ID
	waits := b.running(later, ends, RunOptions{})
	waits = b.push(waits, later, Waits(waits, &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingInput, runlane.WaitingTime}, Names: []string{"answer"}, Until: ends,
	}))
	scheduled := b.create(noon, RunOptions{RunAt: ends}).ID
	inOther, endedInOther := b.create(later, other).ID, b.finished(before, runlane.StatusCancelled, other)
	again, endedAgain := b.create(later, rerun).ID, b.finished(before, runlane.StatusSucceeded, rerun)
	night, endedNight := b.create(later, nightly).ID, b.finished(before, runlane.StatusSucceeded, nightly)

	is := func(statuses ...runlane.Status) []runlane.Status { return statuses }
	for _, c := range []struct {
		q    lane.RunQuery
		want []runlane.RunID
	}{
		{lane.RunQuery{Statuses: is(runlane.StatusFailed)}, []runlane.RunID{failed}},
		{lane.RunQuery{Statuses: is(runlane.StatusFailed), Queue: Queue, TaskID: TaskID}, []runlane.RunID{failed}},
		{
			lane.RunQuery{Statuses: is(runlane.StatusRunning, runlane.StatusCancelled)},
			[]runlane.RunID{running, endedInOther},
		},
		{lane.RunQuery{Statuses: is(runlane.StatusScheduled)}, []runlane.RunID{scheduled}},
		{lane.RunQuery{Statuses: is(waits.Status), Queue: Queue}, []runlane.RunID{waits.ID}},
		{lane.RunQuery{Waiting: runlane.WaitingInput}, []runlane.RunID{waits.ID}},
		{lane.RunQuery{Waiting: runlane.WaitingTime, TaskID: TaskID}, []runlane.RunID{waits.ID}},
		{lane.RunQuery{Queue: "other"}, []runlane.RunID{inOther, endedInOther}},
		{lane.RunQuery{TaskID: "task.other"}, []runlane.RunID{inOther, endedInOther}},
		{
			lane.RunQuery{TaskID: "task.other", Queue: "other", Statuses: is(runlane.StatusCancelled)},
			[]runlane.RunID{endedInOther},
		},
		{lane.RunQuery{SourceRunID: "run_before"}, []runlane.RunID{again, endedAgain}},
		{lane.RunQuery{ScheduleID: "nightly"}, []runlane.RunID{night, endedNight}},
		{lane.RunQuery{ScheduleID: "nightly", Statuses: is(runlane.StatusSucceeded)}, []runlane.RunID{endedNight}},
	} {
		c.q.PageQuery = lane.PageQuery{Environment: b.env, Limit: 2}
		var got []runlane.RunID
		for _, run := range must(b.storage.ListRuns(b.ctx(), &c.q))(t).Items {
			got = append(got, run.ID)
		}
		if d := difference(c.want, got); d != "" {
			t.Errorf("%+v: the first page (-want +got):\n%s", c.q, d)
		}
	}
	due := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: b.env}, At: ends, Queues: []runlane.QueueName{"other"}}
	if page := must(b.storage.ListRunnableRuns(b.ctx(), due))(t); len(page.Items) != 1 || page.Items[0].RunID != inOther {
		t.Errorf("runnable in a queue: %v", page)
	}
	countsAll(t, b)
}

// countsAll compares what a storage counts with what it lists.
func countsAll(t *testing.T, b *bundle) {
	t.Helper()
	c := lane.CountQuery{Environment: b.env, Queue: Queue, At: noon.Add(time.Minute), QueuedAt: noon.Add(time.Second / 2)}
	want := &lane.RunCounts{}
	q := lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: runlane.MaxPageLimit}, Queue: Queue}
	for {
		page := must(b.storage.ListRuns(b.ctx(), &q))(t)
		for i := range page.Items {
			run := &page.Items[i]
			due, until := run.RunAt, c.At
			if run.Status == runlane.StatusQueued {
				until = c.QueuedAt
				if due.IsZero() {
					due = run.CreatedAt
				}
			}
			switch {
			case run.Status.Owned():
				want.Owned++
			case run.Status.Active():
				want.Saw(!due.After(until), 1, due, run.ID)
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if d := difference(want, must(b.storage.CountRuns(b.ctx(), &c))(t)); d != "" || want.Due < fewAmong || want.Later < fewAmong/2 {
		t.Errorf("the counts of a queue are not those of its list (-want +got):\n%s", d)
	}
}
