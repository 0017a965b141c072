// Package lane is the contract of an adapter: [Storage], [Transport], and the [Lane] that pairs them. Applications only
// pass a *Lane from memlane or awslane to core.Open. The conformance suite is package lanetest.
//
// Storage owns durable truth: each writing method is one atomic commit of events, projection, owners and outbox rows.
// Transport only wakes a worker to check a run: losing, repeating, delaying or reordering its messages never corrupts a
// run.
//
// # Writing a storage
//
// Read docs/internals/contract.md, the comments of this package, and package lanetest. An adapter imports runlane and
// lane, never core: it stores core's decisions, and never derives a status or counts an attempt.
//
// Embed [UnimplementedStorage] and write AppendRunEvents, then GetRun, GetRuns and InspectRun. Pass the storage to
// lanetest.RunStorage, turn on one flag of [StorageCapabilities] at a time, and see its cases fail first. Handlers need
// LeasesRuns and PersistsOutbox. memlane is the smallest complete storage.
//
// Check a [Transition] in this order, inside the write:
//
//  1. The context: runlane.ErrOperationCancelled if it ended before the call.
//  2. A command without a projection: [Transition.Validate] reports it.
//  3. The sequence, 0 for an absent run: ConflictEventSequence. So are a creation of an existing ID and a projection with
//     another creation time. A stale command is a lost race, even if it is malformed.
//  4. The lease token, if the command has one. A run without a lease has no token.
//  5. [Transition.Validate], and any contradiction of the stored run: runlane.ErrContractViolation.
//  6. Missing abilities: runlane.ErrCapabilityUnsupported.
//  7. For a suspension, its Look (ConflictWait); for a node, its flow (ConflictFlow); for a claim or a reservation, the
//     run's eligibility at the command's At, then its slot. Losing the last two is an outcome, not an error.
//  8. For a creation, the idempotency key, the singleton key, the slot, then the application's own writes.
//
// A database that checks conditions at the commit detects a violation late. Then read again, and report by this order,
// not by the condition that failed.
//
// Easily missed:
//
//   - Store and return [RunAtRest] and [EventAtRest]. Neither keep nor change a command.
//   - Payload and output are bytes: a JSON column that reorders keys cannot hold them. An absent output is nil. A
//     projection without a payload keeps the stored one.
//   - An absent trace carrier keeps the stored one; an empty one ends the trace.
//   - Keep and list unknown events as *runlane.UnknownEvent, and refuse to write one.
//   - Put Environment.Name into every key and condition.
//   - A cursor is a place in the order, not a row count; two rows of one instant differ by ID. It is bound to method,
//     environment, filter and order.
//   - Count slots inside the write that takes one. Only commits free a slot, except that a reservation also ends by
//     itself.
//   - Return the winner's record from the write that keeps one. A run's creation time is part of a record's key.
//   - Read the count of signals before the signals.
//   - A repeated completion of an occurrence succeeds.
//   - The next call of PruneRuns finishes the work of one that crashed.
//   - Never blindly repeat a write that may have happened. Read the run: if your events are there, return the commit,
//     else repeat. Only if that read fails too, return an error with "outcome" = "unknown" in its Meta.
//
// # Writing a transport
//
// Embed [UnimplementedTransport] and write PublishWakeups. A failure of one message is
// runlane.ErrTransportPublishFailed and counts against it; throttling and outages are runlane.ErrTransportUnavailable
// and do not count. A queue without a binding fails only its own attempts. A transport that delivers wakeups to its own
// process is a [Receiver], found with [As]; a decorator needs an Unwrap method.
package lane
