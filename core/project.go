package core

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// ProjectRunEvents folds events onto current, nil for a run that does not exist yet, and returns the run they add up to. It
// alone decides what events mean: runtimes call it before each write, storages persist its result and never recompute it. It
// has no clock, does no I/O and throws no dice, so one history is one run for ever, folded in one call or in many. The rules:
// docs/internals/contract.md, Runs and events; docs/internals/decisions.md, Reducer edge cases.
//
// expectedSequence is the sequence of the run as the caller read it, 0 for a new one; the events get the numbers after it.
// Times are projected as [runlane.UTCMillis], and a lease or a due time is reached at its exact millisecond.
//
// Errors are of two classes, each with the run's id. A sequence that is not current's is [runlane.ErrStorageConflict] with
// [runlane.ConflictEventSequence]: a lost race, whatever else is wrong with the call; read the run again and repeat. Everything
// else is [runlane.ErrInvariantViolation]: the caller, the storage or its history is inconsistent, and repeating does not help.
//
// Neither current nor events are changed. The result shares their maps and byte slices: treat all three as read-only, or
// Clone what is kept, as storages do on the way in and on the way out.
func ProjectRunEvents(current *runlane.Run, expectedSequence int64, events ...runlane.Event) (*runlane.Run, error) {
	return reducer.Project(current, expectedSequence, events...)
}
