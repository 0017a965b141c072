package scenarios

import (
	"cmp"
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// What scenarios need of a storage.
func needsHistory(c lane.StorageCapabilities) bool     { return c.ReadsRunHistory }
func needsLeases(c lane.StorageCapabilities) bool      { return c.LeasesRuns }
func needsOutbox(c lane.StorageCapabilities) bool      { return c.PersistsOutbox }
func needsIdempotency(c lane.StorageCapabilities) bool { return c.EnforcesIdempotency }
func needsSingleton(c lane.StorageCapabilities) bool   { return c.EnforcesSingleton }
func needsDeadLetters(c lane.StorageCapabilities) bool { return c.KeepsDeadLetters && c.PersistsOutbox }
func needsRedelivery(c lane.StorageCapabilities) bool  { return c.FindsLostWakeups && c.PersistsOutbox }
func needsPruning(c lane.StorageCapabilities) bool     { return c.PrunesRuns && c.LeasesRuns }

// needsQueues: slots are taken by claims and come with deliveries.
func needsQueues(c lane.StorageCapabilities) bool {
	return c.EnforcesQueueConcurrency && c.LeasesRuns && c.PersistsOutbox && c.ReadsRunHistory
}

func needsBoth(a, b func(lane.StorageCapabilities) bool) func(lane.StorageCapabilities) bool {
	return func(c lane.StorageCapabilities) bool { return a(c) && b(c) }
}

func sorted[T cmp.Ordered](items []T) []T { return slices.Sorted(slices.Values(items)) }

// sameIDs demands the same runs, in any order.
func sameIDs(t testing.TB, what string, want, got []runlane.RunID) {
	t.Helper()
	if !slices.Equal(sorted(want), sorted(got)) {
		t.Fatalf("%s are %q, want %q", what, sorted(got), sorted(want))
	}
}
