package memlane_test

import (
	"testing"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

func TestBodyStore_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunBodyStore(t, func(testing.TB) lane.BodyStore { return memlane.NewBodyStore() })
}
