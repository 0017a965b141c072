//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/front"
	"github.com/runlane/runlane-go/lanetest"
)

// refusing is a client behind a front that refuses requests, for conflicts and for their rate, and loses answers.
func refusing(t *testing.T, refused, lost float64) dynamostore.API {
	t.Helper()
	f, client := awstest.Front(t, &front.Options{Prompt: true, Refused: refused, Lost: lost})
	t.Cleanup(func() { // after the subtests: what never strikes proves nothing
		if s := f.Stats(); refused > 0 && (s.Conflicts == 0 || s.Throttled == 0) || lost > 0 && s.Lost == 0 {
			t.Errorf("the front was never needed: %v", s)
		}
	})
	return client
}

// The contract holds whatever the outcome of single requests: a store that gave up, or that took its own write for another's,
// would fail a case.
func TestConformance_UnderFaults(t *testing.T) {
	t.Parallel()
	client := refusing(t, 0.1, 0.1)
	harness := storageHarness(awstest.DynamoDB(t), awstest.Table(t, awstest.DynamoDB(t)), func(testing.TB) dynamostore.API { return client })
	harness.LosesAnswers = true
	lanetest.RunStorage(t, harness)
}
