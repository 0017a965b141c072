package memlane_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestScheme_MakesAFreshLane(t *testing.T) {
	t.Parallel()
	first, err := lane.Open(t.Context(), "mem:", memlane.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	second, err := lane.Open(t.Context(), "mem:", memlane.Scheme)
	if err != nil || first.Storage == second.Storage {
		t.Errorf("both are one: %v", err)
	}
	if _, err := lane.Open(t.Context(), "mem:x", memlane.Scheme); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a name in memory: %v", err)
	}
}
