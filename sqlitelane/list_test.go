package sqlitelane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

func TestListRuns_FindsTheFew(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	lanetest.ListsFindTheFew(t, lanetest.StorageHarness{New: func(t testing.TB) lane.Storage { t.Helper(); return started(t, path, 0) }})
}

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
