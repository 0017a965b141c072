package main

import (
	"io"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/tools/mutation/protection"
)

// Every protection is missed by a test of dynamostore. The same tests pass with everything in place:
// make test runs them.
func TestProtections_EachTurnedOff_IsMissed(t *testing.T) {
	t.Parallel()
	_ = awstest.Config(t)
	b := &bench{dir: "../../..", output: io.Discard}
	if err := b.build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, r := range protections(false) {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			if err := b.miss(t.Context(), r, false); err != nil || len(r.missedBy) == 0 {
				t.Errorf("no test of %s failed: %v", r.sets[0].pattern, err)
			}
		})
	}
}

func TestProtections_EachHasItsTests(t *testing.T) {
	t.Parallel()
	if len(protection.All()) != 6 || len(protectionTests) != len(protection.All()) {
		t.Errorf("there are %d protections: give each its tests in table.go", len(protection.All()))
	}
	for _, r := range protections(false) {
		if r.sets[0].pattern == "" {
			t.Errorf("no tests miss %s", r.name())
		}
	}
}
