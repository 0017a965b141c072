package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// StorageHarness is what [RunStorage] has to know about a storage.
type StorageHarness struct {
	// New returns a storage that is started and is closed by t.Cleanup. Several may share one backend: every case uses
	// separate environments. Required.
	New func(t testing.TB) lane.Storage
	// Capabilities are what the storage is expected to promise.
	Capabilities lane.StorageCapabilities
	// EventuallyConsistent: scans and lists may show a write late. Their cases then repeat a read until it is as
	// expected, for a few seconds. Without it the first read must be right.
	EventuallyConsistent bool
	// IndexesLists: the storage reads every list by an index, so that the first page has the few runs that match among
	// many others, and counts them exactly. Without it a page may be empty and have a next one.
	IndexesLists bool
	// LosesAnswers: requests below the storage fail on purpose with their outcome unknown. Two callers may then count
	// the same removed run, and a put that succeeded may be refused if another put followed: the storage cannot tell.
	LosesAnswers bool
	// PlantUnknownEvent, when set, appends an event of a type that this version does not know to a run, as a newer
	// version would have done, behind the contract's back.
	PlantUnknownEvent func(t testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent)
	// Skewed, when set, returns another process's storage over the data of s, whose own clock is ahead of that of s.
	// Without it the cases of two clocks let two processes share s, and differ in the instants of their commands only.
	Skewed func(t testing.TB, s lane.Storage, ahead time.Duration) lane.Storage
	// Mortal, when set, returns another process's storage over the data of s, which dies after so many requests to its
	// backend: those that follow are not carried out. Storages whose state survives them should set it.
	Mortal func(t testing.TB, s lane.Storage, requests int) lane.Storage
}

// storageCase proves one rule. The comment above each names the section that states it.
type storageCase struct {
	name string
	// needs tells whether the storage promises what the case is about; nil: every storage does.
	needs func(lane.StorageCapabilities) bool
	run   func(t *testing.T, b *bundle)
}

type storageGroup struct {
	name  string
	cases []storageCase
}

func storageGroups() []storageGroup {
	return []storageGroup{
		{"Capabilities", capabilityCases()},
		{"Append", appendCases()},
		{"Bytes", byteCases()},
		{"Copies", copyCases()},
		{"Owners", append(ownerCases(), debounceCases()...)},
		{"Queues", append(append(queueCases(), queueScanCases()...), rateCases()...)},
		{"Claim", claimCases()},
		{"Lease", leaseCases()},
		{"Outbox", outboxCases()},
		{"Marks", markCases()},
		{"DeadLetters", deadLetterCases()},
		{"Scans", scanCases()},
		{"Redelivery", redeliveryCases()},
		{"Paging", pagingCases()},
		{"Reads", readCases()},
		{"Environments", environmentCases()},
		{"Contract", contractCases()},
		{"Schedules", scheduleCases()},
		{"Clocks", clockCases()},
		{"Pruning", pruneCases()}, {"Lists", listCases()},
		{"Progress", progressCases()},
		{"Waits", waitCases()},
		{"Signals", signalCases()},
		{"Calls", callCases()},
		{"Flows", flowCases()},
		{"Records", recordCases()},
		{"Catalog", catalogCases()},
		{"Pauses", pauseCases()},
		{"Hazards", slices.Concat(
			hazardCases(),
			hazardQueueCases(),
			hazardLaterCases(),
			reuseCases(),
		)},
	}
}

// RunStorage proves the contract of lane.Storage.
func RunStorage(t *testing.T, h StorageHarness) {
	t.Helper()
	groups := storageGroups()
	if h.IndexesLists {
		groups = append(groups, storageGroup{"IndexedLists", []storageCase{
			{"TheFirstPageHasTheFew", needsBoth(needsHistory, needsLeases), listFirstPageHasTheFew},
		}})
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				if c.needs != nil && !c.needs(h.Capabilities) {
					continue // Capabilities proves that its methods say so
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					b := newBundle(t, h)
					c.run(t, b)
					b.verify()
				})
			}
		})
	}
}

// What cases need.
func needsHistory(c lane.StorageCapabilities) bool     { return c.ReadsRunHistory }
func needsLeases(c lane.StorageCapabilities) bool      { return c.LeasesRuns }
func needsOutbox(c lane.StorageCapabilities) bool      { return c.PersistsOutbox }
func needsIdempotency(c lane.StorageCapabilities) bool { return c.EnforcesIdempotency }
func needsSingleton(c lane.StorageCapabilities) bool   { return c.EnforcesSingleton }
func needsTasks(c lane.StorageCapabilities) bool       { return c.KeepsTasks }
func needsProgress(c lane.StorageCapabilities) bool    { return c.LeasesRuns && c.KeepsProgress }
func needsDeadLetters(c lane.StorageCapabilities) bool { return c.KeepsDeadLetters && c.PersistsOutbox }
func needsRedelivery(c lane.StorageCapabilities) bool  { return c.FindsLostWakeups && c.PersistsOutbox }

func needsBoth(a, b func(lane.StorageCapabilities) bool) func(lane.StorageCapabilities) bool {
	return func(c lane.StorageCapabilities) bool { return a(c) && b(c) }
}
