package core

import (
	"testing"

	"github.com/runlane/runlane-go"
)

func TestEventEffects_HaveARowForEachType(t *testing.T) {
	t.Parallel()
	for _, kind := range runlane.EventTypes() {
		effect, ok := eventEffects[kind]
		if !ok {
			t.Errorf("%s has no row", kind)
		}
		if ends := effect.attempt == attemptEnds; ends != (effect.outcome != "") || effect.final && !ends {
			t.Errorf("%s: %+v", kind, effect)
		}
	}
	if want := len(runlane.EventTypes()); len(eventEffects) != want {
		t.Errorf("%d rows, %d types", len(eventEffects), want)
	}
}
