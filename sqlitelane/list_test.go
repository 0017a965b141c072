package sqlitelane_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// Rows that an older program made are in no group, and are found all the same.
func TestListRuns_RowsOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	everyState(t, s)
	lists := func() (found [][]runlane.RunID) {
		t.Helper()
		for _, q := range []lane.RunQuery{
			{}, {TaskID: lanetest.TaskID}, {Queue: "bounded"}, {ScheduleID: "nightly"},
			{Statuses: []runlane.Status{runlane.StatusRetrying}},
			{Statuses: []runlane.Status{runlane.StatusQueued, runlane.StatusFailed}},
		} {
			q.PageQuery = lane.PageQuery{Environment: deedsEnvironment, Limit: runlane.MaxPageLimit}
			page, err := s.ListRuns(t.Context(), &q)
			if err != nil {
				t.Fatal(err)
			}
			var ids []runlane.RunID
			for _, run := range page.Items {
				ids = append(ids, run.ID)
			}
			found = append(found, ids)
		}
		return found
	}
	before := lists()
	if err := s.ForgetLists(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, lists()); d != "" {
		t.Error(d)
	}
}

// Twelve thousand waiting runs of one queue are counted, each.
func TestQueueStats_ManyWaiting_AreCounted(t *testing.T) {
	t.Parallel()
	const many = 12_000
	s := started(t, newPath(t), 0)
	f := lanetest.NewFactory("default")
	run, err := s.AppendRunEvents(t.Context(), f.Creation(t, time.Now().Add(-time.Hour), lanetest.RunOptions{NoDelivery: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Multiply(run.Run.ID, many-1); err != nil {
		t.Fatal(err)
	}
	l, err := lane.New(s, sqlitelane.NewTransport(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	stats, err := rt.Queues().Stats(t.Context(), run.Run.Queue)
	if err != nil || stats.Waiting != many || stats.AtLeast || !stats.KeysAtLeast || stats.OldestWaiting.IsZero() || stats.Oldest == "" {
		t.Errorf("%+v, %v", stats, err)
	}
}
