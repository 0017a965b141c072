// Package fail builds and inspects the errors common to core and its internal packages.
package fail

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// Option returns the error for an invalid option of core.Open.
func Option(hint, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Input returns the error for an invalid argument.
func Input(hint, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrValidationFailed, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Unsupported returns the error for an ability that the lane lacks.
func Unsupported(message string) error {
	return &runlane.Error{
		Code:    runlane.ErrCapabilityUnsupported,
		Message: message,
		Hint:    "look at the lane's capabilities, or use another lane",
	}
}

// Cancelled returns the error for an ended ctx.
func Cancelled(ctx context.Context, run runlane.RunID) error {
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the caller's context ended",
		RunID:     run,
		Retryable: true,
		Cause:     context.Cause(ctx),
	}
}

func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// As finds an error of this module in err. A nil pointer does not count.
func As(err error) (*runlane.Error, bool) {
	e, ok := errors.AsType[*runlane.Error](err)
	return e, ok && e != nil
}

func Hint(err error) string {
	if e, ok := As(err); ok {
		return e.Hint
	}
	return ""
}

// Message returns an error's own message, without its code.
func Message(err error) string {
	if e, ok := As(err); ok {
		return e.Message
	}
	return strings.TrimSpace(err.Error())
}

// IsConflict reports whether err is a lost race of this kind.
func IsConflict(err error, kind runlane.ConflictKind) bool { return err != nil && errors.Is(err, kind) }

// IsNotFound reports whether err means that the run does not exist.
func IsNotFound(err error) bool { return err != nil && errors.Is(err, runlane.ErrRunNotFound) }
