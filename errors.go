package runlane

import (
	"errors"
	"time"
)

// ErrorCode is a stable code, and itself an error: errors.Is(err, runlane.ErrRunNotFound) works wherever the code was
// set, and a switch over [CodeOf] needs no second list of names.
type ErrorCode string

// Error returns the code.
func (c ErrorCode) Error() string { return string(c) }

// The codes of the contract.
const (
	// ErrCapabilityUnsupported: the adapter does not have this ability, and says so in its capabilities.
	ErrCapabilityUnsupported ErrorCode = "capability_unsupported"
	// ErrConfigurationInvalid: a definition, an option or the environment of the program is wrong.
	ErrConfigurationInvalid ErrorCode = "configuration_invalid"
	// ErrValidationFailed: the input of one call is wrong. Nothing was written.
	ErrValidationFailed ErrorCode = "validation_failed"
	// ErrStorageConflict: a race was lost; [Error.Conflict] says which.
	ErrStorageConflict ErrorCode = "storage_conflict"
	// ErrInvariantViolation: history, projection and request contradict each other.
	ErrInvariantViolation ErrorCode = "invariant_violation"
	// ErrContractViolation: a caller gave an adapter an inconsistent command, or an adapter returned what its contract
	// forbids.
	ErrContractViolation ErrorCode = "adapter_contract_violation"
	// ErrRunNotFound: no such run in this environment.
	ErrRunNotFound ErrorCode = "run_not_found"
	// ErrScheduleNotFound: no such schedule in this environment.
	ErrScheduleNotFound ErrorCode = "schedule_not_found"
	// ErrFlowNotFound: no such flow in this environment.
	ErrFlowNotFound ErrorCode = "flow_not_found"
	// ErrQueueNotFound: no program of this environment uses the queue, and it has no active run.
	ErrQueueNotFound ErrorCode = "queue_not_found"
	// ErrStorageUnavailable: the storage could not be reached, or stayed busy. Retryable.
	ErrStorageUnavailable ErrorCode = "storage_unavailable"
	// ErrTransportUnavailable: the transport could not be reached. Retryable.
	ErrTransportUnavailable ErrorCode = "transport_unavailable"
	// ErrTransportPublishFailed: the transport is reachable and refused this message.
	ErrTransportPublishFailed ErrorCode = "transport_publish_failed"

	// ErrOperationCancelled: the caller's context ended before the outcome was known.
	ErrOperationCancelled ErrorCode = "operation_cancelled"
	// ErrInternal: a fault of this module.
	ErrInternal ErrorCode = "internal_error"
	// ErrTaskNotFound: this process has no handler for the run's task.
	ErrTaskNotFound ErrorCode = "task_not_found"
	// ErrTaskFailed is the code of failures whose error carries none.
	ErrTaskFailed ErrorCode = "task_failed"
	// ErrTaskPanicked: the handler panicked; the stack is in the failure's meta.
	ErrTaskPanicked ErrorCode = "task_panicked"
	// ErrTaskTimedOut: the attempt reached its timeout, or the end of its invocation's time.
	ErrTaskTimedOut ErrorCode = "task_timed_out"
	// ErrLeaseExpired: too many attempts of the run ended without an outcome.
	ErrLeaseExpired ErrorCode = "lease_expired"
	// ErrRunEnded: the run has ended, and nothing reaches it any more. Such an error is [ErrValidationFailed] too.
	ErrRunEnded ErrorCode = "run_ended"
	// ErrRunFailed: a run that was called failed. Its own failure is the cause.
	ErrRunFailed ErrorCode = "run_failed"
	// ErrRunCancelled: a run that was called was cancelled.
	ErrRunCancelled ErrorCode = "run_cancelled"
	// ErrWaitTimedOut: the time limit of a wait is over. Every later attempt is told the same; returned as it is, it
	// fails the run without further retries.
	ErrWaitTimedOut ErrorCode = "wait_timed_out"
	// ErrTokenInvalid: the answer token is forged, expired, or of another environment.
	ErrTokenInvalid ErrorCode = "token_invalid"
	// ErrPayloadUnreadable: payload or output were stored through a [Codec], and this process cannot open them.
	ErrPayloadUnreadable ErrorCode = "payload_unreadable"
)

// ConflictKind says which race was lost. It is an error too, for errors.Is.
type ConflictKind string

// Error returns the kind.
func (k ConflictKind) Error() string { return string(k) }

// The kinds of [ErrStorageConflict].
const (
	// ConflictEventSequence: the run has moved on since it was read. Read it again and repeat.
	ConflictEventSequence ConflictKind = "event_sequence"
	// ConflictIdempotencyKey: another run owns the key.
	ConflictIdempotencyKey ConflictKind = "idempotency_key"
	// ConflictSingletonKey: another active run owns the key.
	ConflictSingletonKey ConflictKind = "singleton_key"
	// ConflictLeaseOwnership: another worker holds the lease now, or none does.
	ConflictLeaseOwnership ConflictKind = "lease_ownership"
	// ConflictOutboxClaim: the claim on an outbox row is over, or the row was superseded.
	ConflictOutboxClaim ConflictKind = "outbox_claim"
	// ConflictScheduleOccurrence: another tick or operator has changed the occurrence or the schedule's record.
	ConflictScheduleOccurrence ConflictKind = "schedule_occurrence"
	// ConflictSignal: a signal of this name and id was sent with another body.
	ConflictSignal ConflictKind = "signal"
	// ConflictWait: what a suspension, or a signal, had looked at has changed. Look again.
	ConflictWait ConflictKind = "wait"
	// ConflictFlow: the flow was closed, retried or changed since it was read.
	ConflictFlow ConflictKind = "flow"
	// ConflictQueueCapacity: the bounded queue has no free slot.
	ConflictQueueCapacity ConflictKind = "queue_capacity"
)

// Error is the only error type that crosses a package boundary of this module. Messages never contain payloads or
// credentials. Branch on Code and Conflict (or errors.Is with their values), never on text.
type Error struct {
	Code      ErrorCode
	Conflict  ConflictKind      // set exactly when Code is ErrStorageConflict
	Message   string            // what is wrong
	Hint      string            // what the reader should do next; may be empty
	Retryable bool              // the same call may succeed later; says nothing about a run whose handler returns it
	RunID     RunID             // the run the error is about; for a conflict on a key, its owner
	Meta      map[string]string // for people; programs branch on the fields above
	Cause     error             // what the layer below said, down to the AWS error
}

// Error is code, message and hint on one line. All methods accept a nil *Error: returned as an error, such a pointer
// becomes an interface value that is not nil.
func (e *Error) Error() string {
	if e == nil {
		return "nil *runlane.Error"
	}
	text := string(e.Code)
	if e.Conflict != "" {
		text += "/" + string(e.Conflict)
	}
	text += ": " + e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// Is matches an [ErrorCode] or a [ConflictKind].
func (e *Error) Is(target error) bool {
	return e != nil && (target == error(e.Code) || e.Conflict != "" && target == error(e.Conflict))
}

// NewConflict is a lost race: [ErrStorageConflict] with its kind, retryable after reading again.
func NewConflict(kind ConflictKind, message string) *Error {
	return &Error{Code: ErrStorageConflict, Conflict: kind, Message: message, Retryable: true}
}

// CodeOf returns the code err carries, the outermost one, or "" when it carries none.
func CodeOf(err error) ErrorCode {
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		return e.Code
	}
	if code, ok := errors.AsType[ErrorCode](err); ok {
		return code
	}
	return ""
}

// Causes of a handler's context, read with context.Cause.
var (
	// ErrCancelRequested: an operator asked the run to stop.
	ErrCancelRequested = errors.New("runlane: cancellation requested")
	// ErrShutdown: the worker stops; the attempt is put back and costs nothing.
	ErrShutdown = errors.New("runlane: worker is shutting down")
	// ErrLeaseLost: another worker owns the run; nothing this attempt returns is recorded.
	ErrLeaseLost = errors.New("runlane: lease lost")
	// ErrTimeout: the attempt's time is over.
	ErrTimeout = errors.New("runlane: attempt timed out")
)

// ReleaseError is what [Release] returns; wrap it freely.
type ReleaseError struct {
	Delay   time.Duration     // more than 0, at most MaxReleaseDelay; not looked at with Waiting
	Reason  string            // at most MaxReasonBytes
	Meta    map[string]string // kept in the run's history
	Waiting *Waiting          // what ends the wait, with its own time limit; nil for Release
}

// Error says what is asked for.
func (e *ReleaseError) Error() string {
	if e == nil {
		return "nil *runlane.ReleaseError"
	}
	if e.Waiting != nil {
		return "suspended: " + e.Reason
	}
	return "release for " + e.Delay.String() + ": " + e.Reason
}

// Release, returned from a handler, waits without failing: the run resumes after delay. It only takes effect when the
// handler returns it. A delay of 0, below 0 or above [MaxReleaseDelay] makes the attempt a failure.
func Release(delay time.Duration, reason string) error {
	return &ReleaseError{Delay: delay, Reason: reason}
}

// Block, returned from a handler, waits without a limit until an operator resumes the run. reason says what is to be
// done first, at most [MaxPromptBytes]; a longer one makes the attempt a failure.
func Block(reason string) error {
	return &ReleaseError{Reason: reason, Waiting: &Waiting{For: []WaitingFor{WaitingBlocked}, Prompt: reason}}
}

// Suspended reports that err asks for the end of this attempt and not of the run: return it as it is. It is true for
// what [Release] and [Block] return, and for calls of an attempt that have no answer yet. Every other error of such a
// call is an answer.
func Suspended(err error) bool {
	r, ok := errors.AsType[*ReleaseError](err)
	return ok && r != nil
}

// Permanent, returned from a handler, fails the run at once, without the retries it has left. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// RetryAfter, returned from a handler, counts as a failure but replaces the backoff by delay. RetryAfter(d, nil) is
// nil.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Delay: delay, Err: err}
}

// PermanentError is what [Permanent] returns, for tests and errors.AsType.
type PermanentError struct{ Err error }

// Error is the wrapped error's text.
func (e *PermanentError) Error() string { return textOf(e.Unwrap()) }

// Unwrap returns the wrapped error.
func (e *PermanentError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// RetryAfterError is what [RetryAfter] returns, for tests and errors.AsType.
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

// Error is the wrapped error's text.
func (e *RetryAfterError) Error() string { return textOf(e.Unwrap()) }

// Unwrap returns the wrapped error.
func (e *RetryAfterError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// textOf is the text of an error that may be missing.
func textOf(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
