package core

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// ProjectRunEvents applies events to current, which is nil for a run that does not exist yet, and returns the resulting
// run. It alone decides what events mean: runtimes call it before each write, storages persist its result and never
// compute it again. It has no clock, does no I/O and uses no random numbers, so one history always gives the same run,
// in one call or in many. The rules: docs/internals/contract.md, Runs and events;
// docs/internals/design.md, Reducer edge cases.
//
// expectedSequence is the sequence of the run as the caller read it, 0 for a new one. The events get the numbers after
// it. Times are projected as [runlane.UTCMillis], and a lease or a due time is reached at its exact millisecond.
//
// There are two classes of errors, each with the run's id:
//
//   - [runlane.ErrStorageConflict] with [runlane.ConflictEventSequence]: the sequence is not that of current. The
//     caller lost a race, whatever else is wrong with the call: read the run again and repeat.
//   - [runlane.ErrInvariantViolation], everything else: the caller, the storage or its history is inconsistent.
//     Repeating does not help.
//
// Neither current nor events are changed. The result shares their maps and byte slices: treat all three as read-only,
// or Clone what you keep, as storages do with what they are given and what they return.
func ProjectRunEvents(current *runlane.Run, expectedSequence int64, events ...runlane.Event) (*runlane.Run, error) {
	return reducer.Project(current, expectedSequence, events...)
}
