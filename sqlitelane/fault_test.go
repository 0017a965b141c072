//go:build proof

package sqlitelane_test

import (
	"context"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// quick is a lane whose time may be virtual.
func quick(t testing.TB) *lane.Lane {
	t.Helper()
	l, err := sqlitelane.OpenQuick(newPath(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// The runtime's scenarios while calls between the runtime and the lane go wrong, wakeups are lost, or come twice.
func TestRuntime_Scenarios_UnderFaults(t *testing.T) {
	t.Parallel()
	for _, faults := range scenarios.FaultSets() {
		t.Run(faults.Name, func(t *testing.T) {
			t.Parallel()
			scenarios.RunUnderFaults(t, scenarios.Harness{NewLane: quick, Virtual: true}, faults)
		})
	}
}
