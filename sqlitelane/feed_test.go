package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
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
