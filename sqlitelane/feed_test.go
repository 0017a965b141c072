package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

func TestFeed_IsExact(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, path string) *lane.Lane {
		t.Helper()
		l, err := sqlitelane.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	scenarios.RunFeed(t, scenarios.FeedHarness{
		NewLane: func(t testing.TB) *lane.Lane {
			t.Helper()
			return open(t, newPath(t))
		},
		Other: func(t testing.TB, l *lane.Lane) *lane.Lane {
			t.Helper()
			return open(t, l.Storage.(*sqlitelane.Storage).Path())
		},
	})
}

// A position is of the file's history: one that was read after a copy leads nowhere once the file went back to that.
func TestFeed_PositionFromBeforeARestore_IsRefused(t *testing.T) {
	t.Parallel()
	path, copied := newPath(t), newPath(t)
	s := sqlitelane.NewStorage(path, 0)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := lanetest.NewFactory("default")
	add := func(n int) {
		t.Helper()
		for range n {
			if _, err := s.AppendRunEvents(t.Context(), f.Creation(t, noon, lanetest.RunOptions{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.BeginFeed(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(3)
	kept, err := s.BeginFeed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyTo(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	add(5)
	late, err := s.BeginFeed(t.Context())
	if err != nil || s.Close(t.Context()) != nil {
		t.Fatal(err)
	}
	if _, err := started(t, copied, 0).RestoreTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s = started(t, path, 0)
	add(10)
	q := &lane.FeedQuery{Environment: "default", After: late, Limit: 100}
	if _, err := s.ReadFeed(t.Context(), q); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Errorf("a position of what is gone: %v", err)
	}
	q.After = kept
	if page, err := s.ReadFeed(t.Context(), q); err != nil || len(page.Items) != 10 {
		t.Errorf("a position of what the copy has: %v, %v", page, err)
	}
}
