package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/protection"
)

// Every protection is missed by a test of dynamostore. The same tests pass with everything in place: make test runs them. make
// reliability asks more tests, and names those that fail.
func TestProtections_EachTurnedOff_IsMissed(t *testing.T) {
	t.Parallel()
	_ = awstest.Config(t)
	program := filepath.Join(t.TempDir(), "dynamostore.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "../../../dynamostore").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for p, pattern := range map[protection.Protection]string{
		protection.Fencing:       "^TestCondition_",
		protection.MarkerMove:    "^TestCondition_",
		protection.SlotCondition: "^TestCondition_",
		protection.OwnerDedup:    "^TestCondition_",
		protection.TokenReuse:    "^TestTransaction_",
		protection.ConflictRetry: "^TestScenarios_UnderFaults$/^Outcome",
	} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			m := machine{
				name: string(p), folder: "../../../dynamostore", command: []string{program, "-test.v", "-test.failfast", "-test.timeout", "15m", "-test.run", pattern},
				environment: []string{protection.Variable + "=" + string(p)},
			}
			failed, err := m.run(t.Context(), io.Discard, func(string) {})
			if err != nil || len(failed) == 0 {
				t.Errorf("no test of %s failed: %v", pattern, err)
			}
		})
	}
	if len(protection.All()) != 6 {
		t.Errorf("there are %d protections: give each its tests here", len(protection.All()))
	}
}
