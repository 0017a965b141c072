package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// A runtime does the same on a lane that keeps every body apart: every scenario of the suite.
func TestRuntime_MemlaneWithBodiesApart(t *testing.T) {
	t.Parallel()
	scenarios.Run(t, scenarios.Harness{
		NewLane: func(t testing.TB) *lane.Lane {
			t.Helper()
			l := memlane.New()
			l.Bodies.Above = 0
			return l
		},
		Virtual: true,
	})
}

// A storage with its bodies apart is a storage: it keeps the whole contract.
func TestStorage_MemlaneWithBodiesApart(t *testing.T) {
	t.Parallel()
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: func(t testing.TB) lane.Storage {
			t.Helper()
			return &withoutSealed{core.NewBodyStorage(memlane.NewStorage(nil), memlane.NewBodyStore()), t, ""}
		},
		Capabilities: memlane.NewStorage(nil).Capabilities(),
	})
}
