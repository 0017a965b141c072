// Package lane is what an adapter implements: [Storage], [Transport], and the [Lane] that pairs them. Applications only
// pass a *Lane from memlane or awslane to core.Open. The conformance suite is package lanetest.
//
// Storage owns durable truth: each method that writes is one atomic commit of events, projection, owners and outbox
// rows. Transport only tells a worker to check a run: losing, repeating, delaying or reordering its messages never
// corrupts a run.
//
// # Writing a storage
//
// An adapter needs docs/internals/contract.md, the comments of this package, and package lanetest. It imports runlane
// and lane, never core: it keeps what core decided, and never derives a status or counts an attempt.
//
// Embed [UnimplementedStorage] and write AppendRunEvents, then GetRun, GetRuns and InspectRun. Hand the storage to
// lanetest.RunStorage, turn on one flag of [StorageCapabilities] at a time, and see its cases fail first. Handlers need
// LeasesRuns and PersistsOutbox. memlane is the smallest whole storage.
//
// Judge a [Transition] in this order, inside the write:
//
//  1. The context: runlane.ErrOperationCancelled if it ended before the call.
//  2. A command without a projection: [Transition.Validate] reports it.
//  3. The sequence, 0 for an absent run. A creation of an existing id, and a projection with another instant of creation,
//     are ConflictEventSequence too. A stale command is a lost race, however malformed it is.
//  4. The lease token, where the command has one. A run without a lease has no token.
//  5. [Transition.Validate], and whatever contradicts the stored run: runlane.ErrContractViolation.
//  6. Missing abilities: runlane.ErrCapabilityUnsupported.
//  7. The look of a suspension (ConflictWait) or the flow of a node (ConflictFlow); for a claim or a reservation, whether
//     the run is eligible at the command's At, then its slot: losing these two is an outcome.
//  8. For a creation, the idempotency key, the singleton key, then the slot.
//
// A database that checks conditions at the commit finds out late. Then read again, and report by this order rather than
// by the condition that failed.
//
// Easily missed:
//
//   - Store and return [RunAtRest] and [EventAtRest]. Neither keep nor change a command.
//   - Payload and output are bytes: a JSON column that reorders keys cannot hold them. An absent output is nil. A
//     projection without a payload keeps the stored one.
//   - An absent trace carrier replaces nothing; an empty one ends the trace.
//   - Keep and list unknown events as *runlane.UnknownEvent, and refuse to write one.
//   - Put Environment.Name into every key and condition.
//   - A cursor is a place in the order, not a row count, and two rows of one instant differ by id. It is bound to method,
//     environment, filter and order.
//   - Count slots inside the write that takes one. Commits free a slot; only a reservation ends by itself.
//   - Return the winner's record from the write that keeps one. A run's creation is part of a record's key.
//   - Read the count of signals before the signals.
//   - A completion of an occurrence that is repeated finds itself.
//   - The next call of PruneRuns finishes what a crash left.
//   - Never repeat blindly a write that may have happened. Read the run: if your events are there, answer with the commit,
//     else repeat. Only if reading fails too, the error has "outcome" = "unknown" in its Meta.
//
// # Writing a transport
//
// Embed [UnimplementedTransport] and write PublishWakeups. A failure of one message is runlane.ErrTransportPublishFailed
// and counts against it; throttling and outages are runlane.ErrTransportUnavailable and do not. A queue without a
// binding fails its own attempts and no others. One that delivers
// wakeups to its own process is a [Receiver], which [As] finds; a decorator needs an Unwrap method.
package lane
