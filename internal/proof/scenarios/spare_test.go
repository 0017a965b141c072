package scenarios

import (
	"slices"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
)

// What is spared names scenarios, groups and methods that there are, has a reason, and is no more than a part of the table.
func TestSpared_NamesWhatThereIs(t *testing.T) {
	t.Parallel()
	groups, names := map[string]bool{}, map[string]bool{}
	for _, group := range scenarioTable() {
		groups[group.name] = true
		for _, s := range group.scenarios {
			if names[s.name] {
				t.Errorf("two scenarios are named %q", s.name)
			}
			names[s.name] = true
		}
	}
	left := map[string]bool{}
	for i, s := range spared() {
		if s.reason == "" || len(s.kinds) == 0 || len(s.scenarios)+len(s.groups) == 0 || len(s.methods) == 0 && len(s.groups) > 0 {
			t.Errorf("entry %d says too little, or too much: %+v", i+1, s)
		}
		for _, name := range s.groups {
			if !groups[name] {
				t.Errorf("there is no group %q", name)
			}
		}
		for _, name := range s.scenarios {
			if !names[name] {
				t.Errorf("there is no scenario %q", name)
			}
			if len(s.methods) == 0 && slices.Contains(s.kinds, lanefault.After) {
				left[name] = true
			}
		}
		for _, method := range s.methods {
			if !slices.Contains(lanefault.Methods(), method) {
				t.Errorf("there is no method %q", method)
			}
		}
	}
	if 15*len(left) > len(names) {
		t.Errorf("%d of %d scenarios are left out under lost answers", len(left), len(names))
	}
}
