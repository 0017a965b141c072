package rows

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func SequenceConflict(t *lane.Transition, actual int64) error {
	if actual == t.ExpectedSequence {
		return Conflict(runlane.ConflictEventSequence, t.Projected.ID, "the id belongs to another run by now")
	}
	return Conflict(
		runlane.ConflictEventSequence,
		t.Projected.ID,
		"the run is at sequence %d, not %d",
		actual,
		t.ExpectedSequence,
	)
}

func LeaseLost(key lane.RunKey) error {
	return Conflict(runlane.ConflictLeaseOwnership, key.RunID, "the lease no longer belongs to this worker")
}

// NotFound reports an unknown run.
func NotFound(key lane.RunKey) error {
	return &runlane.Error{
		Code:    runlane.ErrRunNotFound,
		Message: "no such run",
		RunID:   key.RunID,
		Meta:    map[string]string{"environment": key.Environment.Name()},
	}
}

func OwnerNotFound() error {
	return &runlane.Error{Code: runlane.ErrRunNotFound, Message: "no run owns this key"}
}

func Conflict(kind runlane.ConflictKind, run runlane.RunID, format string, args ...any) *runlane.Error {
	e := runlane.NewConflict(kind, fmt.Sprintf(format, args...))
	e.RunID = run
	return e
}

func ScheduleNotFound(key lane.ScheduleKey) error {
	return &runlane.Error{
		Code:    runlane.ErrScheduleNotFound,
		Message: fmt.Sprintf("no such schedule: %q", key.ScheduleID),
		Hint:    "check the schedule id and the environment; the first tick that knows a schedule makes its record",
		Meta:    map[string]string{"environment": key.Environment.Name()},
	}
}
