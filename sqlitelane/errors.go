package sqlitelane

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
)

// ended refuses a call whose context has ended. Every method begins with it.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrOperationCancelled, Message: "the context had ended before the call", Retryable: true,
		Cause: context.Cause(ctx),
	}
}

func notFound(id runlane.RunID) error {
	return &runlane.Error{
		Code: runlane.ErrRunNotFound, Message: "no such run", RunID: id,
		Hint: "check the run id and the environment; the run may have been pruned",
	}
}

func conflict(kind runlane.ConflictKind, id runlane.RunID, format string, args ...any) error {
	err := runlane.NewConflict(kind, fmt.Sprintf(format, args...))
	err.RunID = id
	return err
}

func violation(id runlane.RunID, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), RunID: id}
}
