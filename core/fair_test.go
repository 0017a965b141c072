package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/memlane"
)

func TestFairness_TenThousandOfOneKeyDoNotDelayAnother(t *testing.T) {
	t.Parallel()
	scenarios.RunFairness(t, scenarios.FairnessHarness{Storage: memlane.NewStorage(nil), Waiting: 10_000})
}
