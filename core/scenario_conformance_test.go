//go:build conformance

package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
)

// TestRuntime_Memlane_EachCallOnce runs every scenario once for each call that it makes, and just that call goes wrong.
func TestRuntime_Memlane_EachCallOnce(t *testing.T) {
	t.Parallel()
	for _, faults := range scenarios.FaultSets() {
		faults.EachCall = 1
		t.Run(faults.Name, func(t *testing.T) {
			t.Parallel()
			underFaults(t, faults)
		})
	}
}
