package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
)

// ErrNoTime: too little time was left before the deadline, to begin or for an attempt that was released. Hand the
// wakeup back. If earlier wakeups used the time, another process may take it at once; otherwise delay it, or it soon
// uses up its receives.
var ErrNoTime = errors.New("runlane: too little time left")

// ErrSuspect: the run's last attempt ended without an outcome, so it is executed alone (see [DeliveryOptions]). It was
// not claimed. Execute it when no other delivery is in progress, without DeliveryOptions.Beside, or hand the wakeup
// back with a delay.
var ErrSuspect = errors.New("runlane: the run's last attempt was abandoned")

func invalidOption(hint, format string, args ...any) error {
	return fail.Option(hint, format, args...)
}

func invalidInput(hint, format string, args ...any) error { return fail.Input(hint, format, args...) }

func unsupported(message string) error { return fail.Unsupported(message) }

func taskNotFound(task runlane.TaskID, run runlane.RunID) error {
	return &runlane.Error{
		Code:      runlane.ErrTaskNotFound,
		Message:   fmt.Sprintf("this process has no handler for task %q", task),
		RunID:     run,
		Hint:      "pass its handler to core.Open, or deploy the program that has it",
		Retryable: true,
	}
}

func cancelled(ctx context.Context, run runlane.RunID) error { return fail.Cancelled(ctx, run) }

// joinMessages lists faults on one line, without codes.
func joinMessages(faults []error) string {
	return strings.Join(joinTexts(faults, func(e *runlane.Error) string { return e.Message }), "; ")
}

func joinTexts(faults []error, text func(*runlane.Error) string) (texts []string) {
	for _, fault := range flatten(faults) {
		if e, ok := asError(fault); ok {
			texts = append(texts, text(e))
		} else {
			texts = append(texts, fault.Error())
		}
	}
	return texts
}

// describe lists faults and fixes, numbered if there are several.
func describe(faults []error) (messages, hints string) {
	wrong := joinTexts(faults, func(e *runlane.Error) string { return e.Message })
	var fixes []string
	for i, fault := range flatten(faults) {
		fix := hintOf(fault)
		if len(wrong) > 1 {
			number := strconv.Itoa(i+1) + ". "
			wrong[i] = number + wrong[i]
			fix = strings.TrimSuffix(number+fix, number)
		}
		if fix != "" {
			fixes = append(fixes, fix)
		}
	}
	return strings.Join(wrong, "; "), cmp.Or(strings.Join(fixes, "; "), "correct what is listed")
}

// flatten takes joined errors apart and drops nil.
func flatten(faults []error) []error {
	var flat []error
	for _, fault := range faults {
		if fault == nil {
			continue
		}
		if _, typed := fault.(*runlane.Error); !typed { //nolint:errorlint // only what errors.Join made is taken apart
			if joined, ok := fault.(interface{ Unwrap() []error }); ok {
				flat = append(flat, flatten(joined.Unwrap())...)
				continue
			}
		}
		flat = append(flat, fault)
	}
	return flat
}

func isConflict(err error, kind runlane.ConflictKind) bool { return fail.IsConflict(err, kind) }

func isNotFound(err error) bool { return fail.IsNotFound(err) }

func hintOf(err error) string { return fail.Hint(err) }

func firstError(errs ...error) error { return fail.First(errs...) }

func messageOf(err error) string { return fail.Message(err) }

func namedOption(option string, err error) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: option + " is not valid: " + joinMessages([]error{err}),
		Hint:    hintOf(err),
		Cause:   err,
	}
}

func asError(err error) (*runlane.Error, bool) { return fail.As(err) }

// movedOn reports that the run has left the listed state: it ended, or is gone.
func movedOn(err error) bool {
	return isNotFound(err) || errors.Is(err, errMovedOn)
}

// errMovedOn: the call was rejected for the run's state, rather than for its arguments. It has no text, because
// the errors that wrap it name the state.
var errMovedOn = errors.New("")
