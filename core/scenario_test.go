package core_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRuntime_Memlane runs the table of scenarios on the embedded lane.
func TestRuntime_Memlane(t *testing.T) {
	t.Parallel()
	scenarios.Run(t, scenarios.Harness{
		NewLane: func(testing.TB) *lane.Lane { return memlane.New() },
		Virtual: true,
	})
}
