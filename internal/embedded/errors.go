package embedded

import (
	"context"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// Ended refuses a call with an ended context. Every method calls it first.
func Ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrOperationCancelled, Message: "the context had ended before the call", Retryable: true,
		Cause: context.Cause(ctx),
	}
}

// NotFound is the error for a missing run.
func NotFound(id runlane.RunID) error {
	return &runlane.Error{
		Code: runlane.ErrRunNotFound, Message: "no such run", RunID: id,
		Hint: "check the run id and the environment; the run may have been pruned",
	}
}

// ScheduleNotFound is the error for a missing schedule.
func ScheduleNotFound(id runlane.ScheduleID) error {
	return &runlane.Error{
		Code: runlane.ErrScheduleNotFound, Message: fmt.Sprintf("no such schedule: %q", id),
		Hint: "check the schedule id and the environment; the first tick that knows a schedule makes its record",
	}
}

// TransportClosed is the error of a closed transport.
func TransportClosed() error {
	return &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "the transport is closed"}
}

// Conflict is a race that a command lost.
func Conflict(kind runlane.ConflictKind, id runlane.RunID, message string) error {
	err := runlane.NewConflict(kind, message)
	err.RunID = id
	return err
}

// LeaseLost is the conflict of a command from a worker that lost its lease.
func LeaseLost(id runlane.RunID) error {
	return Conflict(runlane.ConflictLeaseOwnership, id, "the lease no longer belongs to this worker")
}

// NoSlot is the conflict of a new run that needs a slot at once.
func NoSlot(id runlane.RunID) error {
	return Conflict(runlane.ConflictQueueCapacity, id, "no slot of the queue is free")
}

// OccurrenceConflict is a lost race for a schedule or an occurrence.
func OccurrenceConflict(format string, args ...any) error {
	return Conflict(runlane.ConflictScheduleOccurrence, "", fmt.Sprintf(format, args...))
}

// StaleClaims names outbox rows with expired claims. It is nil if there are none.
func StaleClaims(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := runlane.NewConflict(runlane.ConflictOutboxClaim, "the claim on some outbox rows is over")
	err.Meta = map[string]string{"outbox_ids": strings.Join(ids, ",")}
	return err
}

// Violation is the error for a command that contradicts itself or the run.
func Violation(id runlane.RunID, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), RunID: id}
}
