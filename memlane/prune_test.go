package memlane_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// retaining is a storage with n finished runs a millisecond apart that retain their keys for an hour, and one behind them that has
// none, on a clock of the test's own.
func retaining(t *testing.T, n int) (s *memlane.Storage, now *time.Time, last lane.RunKey) {
	t.Helper()
	made := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	clock := made
	s = memlane.NewStorage(&memlane.StorageOptions{Now: func() time.Time { return clock }})
	f := lanetest.NewFactory("test")
	for i := range n + 1 {
		o := lanetest.RunOptions{IdempotencyKey: string(f.NewRunID()), Retention: runlane.KeyRetention{TTL: time.Hour}}
		if i == n {
			o.IdempotencyKey = ""
		}
		at := made.Add(time.Duration(i) * time.Millisecond)
		commit, err := s.AppendRunEvents(t.Context(), f.Creation(t, at, o))
		if err == nil {
			commit, err = s.AppendRunEvents(t.Context(), f.Append(t, commit.Run, at, &runlane.RunCancelled{}))
		}
		if err != nil {
			t.Fatal(err)
		}
		last = lane.RunKey{Environment: "test", RunID: commit.Run.ID}
	}
	return s, &clock, last
}

func prune(t *testing.T, s *memlane.Storage, c lane.PruneCommand) *lane.PruneProgress {
	t.Helper()
	c.Environment, c.OlderThan = "test", time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	progress, err := s.PruneRuns(t.Context(), &c)
	if err != nil {
		t.Fatal(err)
	}
	return progress
}

// One call looks at a thousand rows, whatever becomes of them; what it passes over it counts once and never hides what is behind.
func TestPruneRuns_RowsThatAreSkipped_AreBoundedACallAndCountedOnce(t *testing.T) {
	t.Parallel()
	s, _, last := retaining(t, 2_100)
	var skipped, pruned []int
	c := lane.PruneCommand{}
	for {
		progress := prune(t, s, c)
		skipped, pruned = append(skipped, progress.Skipped), append(pruned, progress.Pruned)
		if c.After = progress.Next; c.After == "" {
			break
		}
	}
	if len(skipped) != 3 || skipped[0] != 1_000 || skipped[1] != 1_000 || skipped[2] != 100 || pruned[2] != 1 {
		t.Errorf("skipped %v, pruned %v", skipped, pruned)
	}
	if _, err := s.GetRun(t.Context(), last); runlane.CodeOf(err) != runlane.ErrRunNotFound {
		t.Errorf("the run behind them: %v", err)
	}
}

// A key counts as retained by the storage's clock, to the millisecond.
func TestPruneRuns_RetentionEnds_AtTheMillisecond(t *testing.T) {
	t.Parallel()
	s, now, _ := retaining(t, 3)
	prune(t, s, lane.PruneCommand{})
	made := *now
	for i := range 3 {
		*now = made.Add(time.Hour + time.Duration(i-1)*time.Millisecond)
		if got := prune(t, s, lane.PruneCommand{}); i == 0 && got.Pruned != 0 || i > 0 && got.Pruned != 1 {
			t.Errorf("at %s: %+v", *now, got)
		}
	}
}

// The default limit, and the invariants after half of the runs are gone.
func TestPruneRuns_DefaultLimit_LeavesASoundStorage(t *testing.T) {
	t.Parallel()
	s, _, _ := retaining(t, 150)
	if got := prune(t, s, lane.PruneCommand{ReleaseOwners: true}); got.Pruned != runlane.DefaultPruneLimit || got.Next == "" {
		t.Errorf("%+v", got)
	}
	q := &lane.PageQuery{Environment: "test"}
	for {
		page, err := s.Check(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) != 0 {
			t.Fatalf("%+v", page.Items)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if got := prune(t, s, lane.PruneCommand{ReleaseOwners: true}); got.Pruned != 51 || got.Next != "" {
		t.Errorf("%+v", got)
	}
}
