// Package fail builds and reads the errors that core and its rooms have in common.
package fail

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// Option is an option of core.Open that cannot be.
func Option(hint, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Input is an argument that cannot be.
func Input(hint, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrValidationFailed, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Unsupported is an ability that the lane does not have.
func Unsupported(message string) error {
	return &runlane.Error{
		Code:    runlane.ErrCapabilityUnsupported,
		Message: message,
		Hint:    "look at the lane's capabilities, or use another lane",
	}
}

// Cancelled is the error of a caller whose context has ended.
func Cancelled(ctx context.Context, run runlane.RunID) error {
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the caller's context ended",
		RunID:     run,
		Retryable: true,
		Cause:     context.Cause(ctx),
	}
}

// First is the first error that is not nil.
func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// As finds an error of this module in err. A nil pointer is none.
func As(err error) (*runlane.Error, bool) {
	e, ok := errors.AsType[*runlane.Error](err)
	return e, ok && e != nil
}

// Hint is an error's hint, "" for none.
func Hint(err error) string {
	if e, ok := As(err); ok {
		return e.Hint
	}
	return ""
}

// Message is an error's own message, without its code.
func Message(err error) string {
	if e, ok := As(err); ok {
		return e.Message
	}
	return strings.TrimSpace(err.Error())
}

// IsConflict reports a lost race of the kind.
func IsConflict(err error, kind runlane.ConflictKind) bool { return err != nil && errors.Is(err, kind) }

// IsNotFound reports a run that does not exist.
func IsNotFound(err error) bool { return err != nil && errors.Is(err, runlane.ErrRunNotFound) }
