// Package lanetest holds the conformance suites for authors of adapters: [RunStorage], [RunTransport] and [RunLane].
// Give each a harness that makes fresh adapters, and it proves the contract of package lane rule by rule:
//
//	func TestConformance(t *testing.T) {
//		lanetest.RunStorage(t, lanetest.StorageHarness{
//			New:          func(t testing.TB) lane.Storage { return mystore.Open(t) },
//			Capabilities: lane.StorageCapabilities{LeasesRuns: true, …},
//		})
//	}
//
// A storage is tested in virtual time: commands carry their instants, so no case waits; only lookups of keys go by the
// real clock. Every case works in a separate environment and runs in parallel with the others, so all may share one
// table. After each case the history of every run it made, folded by core.ProjectRunEvents, must be exactly the stored
// run, and the Check of a storage that has one must find nothing wrong.
//
// What an adapter promises is declared in the harness and compared with its capabilities; the cases of abilities it
// does not promise are replaced by one which demands that their methods answer runlane.ErrCapabilityUnsupported. So a
// storage passes from its first day and stays green while it grows. Groups have the names of the sections of
// docs/internals/contract.md: go test -run 'Conformance/^Append$' runs one, and 'Conformance/^Append$/MalformedCommand'
// one case. Begin with Capabilities and Append.
//
// Above the adapters, [RunRuntime] proves what package core promises over a lane.
//
// [Factory] builds valid runs and commands, for the suites and for an adapter's own tests. [FaultyStorage] and
// [FaultyTransport] put a [FaultPlan] around an adapter and show how its callers fare. To see how the adapter itself
// fares, let its driver lose one answer in five and run the suite over it.
//
// The suite cannot see everything. Run it with -race, and with a New that opens a separate connection. Remove each
// condition of a write by hand: a case fails. Break each invariant by hand: the checker names it. No scan reads
// finished runs; no message holds a payload or a credential; Start reports a missing schema; Close leaves no goroutine.
package lanetest
