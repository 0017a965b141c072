package core_test

import (
	"testing"

	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

func TestFairness_TenThousandOfOneKeyDoNotDelayAnother(t *testing.T) {
	t.Parallel()
	lanetest.RunFairness(t, lanetest.FairnessHarness{Storage: memlane.NewStorage(nil), Waiting: 10_000})
}
