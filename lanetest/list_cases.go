package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Pages and cursors: what a list of runs promises while runs move on.
func listCases() []storageCase {
	return []storageCase{
		{
			"Hazard25_RunsThatMadeNoProgressAreNeitherRepeatedNorMissed",
			needsBoth(needsHistory, needsLeases),
			listWhileMoving,
		},
		{"ActiveRunsOfAllStatusesAreInOneOrder", needsBoth(needsHistory, needsLeases), listOneOrder},
		{"EveryFilterIsPartOfTheCursor", needsBoth(needsHistory, needsLeases), listCursors},
		{"NoStatusesAreAllStatuses", needsBoth(needsHistory, needsLeases), listAllStatuses},
		{"FiltersFindActiveAndFinishedRunsAtEveryPageSize", needsBoth(needsHistory, needsLeases), listFilters},
		{"TheOrderIsTheSameEveryTime", needsBoth(needsHistory, needsLeases), listStable},
	}
}

// Between pages some runs end, of those shown already and of those still to come. The others do nothing.
func listWhileMoving(t *testing.T, b *bundle) {
	var still, moving []*runlane.Run
	for i := range 8 {
		// two are due at the same instant
		run := b.create(noon, RunOptions{RunAt: noon.Add(time.Duration(i/2+1) * time.Hour)})
		if i%2 == 0 {
			still = append(still, run)
		} else {
			moving = append(moving, run)
		}
	}
	for i := range 4 {
		still = append(
			still,
			b.push(b.create(noon, RunOptions{}), noon.Add(time.Duration(i/2)*time.Second), &runlane.RunCancelled{}),
		)
	}
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
	b.eventually(func() string { return difference(len(still)+len(moving), len(b.listRuns(q))) })

	q.Limit = 2
	shown := map[runlane.RunID]int{}
	for {
		page := must(b.storage.ListRuns(b.ctx(), q))(t)
		for _, summary := range page.Items {
			shown[summary.ID]++
		}
		if len(moving) > 0 {
			b.push(moving[0], noon.Add(time.Minute), &runlane.RunCancelled{})
			moving = moving[1:]
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	for _, run := range still {
		if shown[run.ID] != 1 {
			t.Errorf("run %s (%s) was shown %d times", run.ID, run.Status, shown[run.ID])
		}
	}
}

// When a run next needs attention has nothing to do with why it waits.
func listOneOrder(_ *testing.T, b *bundle) {
	var want []runlane.RunID
	for _, run := range b.spread(
		runlane.StatusReleased,
		runlane.StatusQueued,
		runlane.StatusScheduled,
		runlane.StatusRetrying,
		runlane.StatusQueued,
		runlane.StatusReleased,
	) {
		want = append(want, run.ID)
	}
	for limit := range len(want) {
		q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: limit}}
		b.eventually(func() string { return difference(want, b.listRuns(q)) })
	}
}

func listCursors(t *testing.T, b *bundle) {
	source := runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon}
	for range 2 {
		b.create(noon, RunOptions{Source: source})
	}
	q := lane.RunQuery{
		PageQuery:  lane.PageQuery{Environment: b.env, Limit: 1},
		TaskID:     TaskID,
		Queue:      Queue,
		ScheduleID: "nightly",
		Statuses:   []runlane.Status{runlane.StatusQueued},
	}
	q.After = b.firstCursor(func() (runlane.Cursor, error) {
		page, err := b.storage.ListRuns(b.ctx(), &q)
		if err != nil {
			return "", err
		}
		return page.Next, nil
	})
	for what, change := range map[string]func(q *lane.RunQuery){
		"no task":          func(q *lane.RunQuery) { q.TaskID = "" },
		"another queue":    func(q *lane.RunQuery) { q.Queue = "another" },
		"another schedule": func(q *lane.RunQuery) { q.ScheduleID = "weekly" },
		"a source":         func(q *lane.RunQuery) { q.SourceRunID = "run_1" },
		"another status":   func(q *lane.RunQuery) { q.Statuses = []runlane.Status{runlane.StatusScheduled} },
		"one status more": func(q *lane.RunQuery) {
			q.Statuses = append(slices.Clone(q.Statuses), runlane.StatusFailed)
		},
		"no status":         func(q *lane.RunQuery) { q.Statuses = nil },
		"task as the queue": func(q *lane.RunQuery) { q.TaskID, q.Queue = "", runlane.QueueName(q.TaskID) },
	} {
		other := q
		change(&other)
		if _, err := b.storage.ListRuns(b.ctx(), &other); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: error is %v, want %q", what, err, runlane.ErrValidationFailed)
		}
	}
	b.eventually(func() string {
		q.After, q.Limit = "", 1
		q.After, q.Limit = must(b.storage.ListRuns(b.ctx(), &q))(t).Next, 5 // the size of a page may change
		return difference(1, len(must(b.storage.ListRuns(b.ctx(), &q))(t).Items))
	})
}

func listAllStatuses(_ *testing.T, b *bundle) {
	var want []runlane.RunID
	for _, run := range b.everyStatus() {
		want = append(want, run.ID)
	}
	for _, statuses := range [][]runlane.Status{nil, {}} {
		q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}, Statuses: statuses}
		b.eventually(func() string { return difference(sorted(want), sorted(b.listRuns(q))) })
	}
}
