package sqlitelane_test

import (
	"path/filepath"
	"testing"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

func TestBodyStore_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunBodyStore(t, func(t testing.TB) lane.BodyStore {
		l, err := sqlitelane.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.Bodies.Store
	})
}
