package runlane

import (
	"errors"
	"time"
)

// ErrorCode is a stable code and itself an error: errors.Is(err, runlane.ErrRunNotFound) works wherever the code is
// set, and [CodeOf] returns it for a switch.
type ErrorCode string

// Error returns the code.
func (c ErrorCode) Error() string { return string(c) }

// The codes of the contract.
const (
	// ErrCapabilityUnsupported: the adapter lacks this ability; its capabilities list the ones it has.
	ErrCapabilityUnsupported ErrorCode = "capability_unsupported"
	// ErrConfigurationInvalid: a definition, an option or the program's environment is wrong.
	ErrConfigurationInvalid ErrorCode = "configuration_invalid"
	// ErrValidationFailed: the input of one call is wrong. Nothing was written.
	ErrValidationFailed ErrorCode = "validation_failed"
	// ErrStorageConflict: a race was lost; see [Error.Conflict] for the kind.
	ErrStorageConflict ErrorCode = "storage_conflict"
	// ErrInvariantViolation: history, projection and request contradict each other.
	ErrInvariantViolation ErrorCode = "invariant_violation"
	// ErrContractViolation: a caller passed an adapter an inconsistent command, or an adapter returned a result that
	// its contract forbids.
	ErrContractViolation ErrorCode = "adapter_contract_violation"
	// ErrRunNotFound: no such run in this environment.
	ErrRunNotFound ErrorCode = "run_not_found"
	// ErrScheduleNotFound: no such schedule in this environment.
	ErrScheduleNotFound ErrorCode = "schedule_not_found"
	// ErrFlowNotFound: no such flow in this environment.
	ErrFlowNotFound ErrorCode = "flow_not_found"
	// ErrQueueNotFound: no program of this environment uses the queue, and it has no active run.
	ErrQueueNotFound ErrorCode = "queue_not_found"
	// ErrStorageUnavailable: the storage is unreachable or stayed busy. Retryable.
	ErrStorageUnavailable ErrorCode = "storage_unavailable"
	// ErrOverloaded: the storage is near its limit and takes no further run for [Error.RetryAfter]. Nothing was written.
	// Retryable.
	ErrOverloaded ErrorCode = "overloaded"
	// ErrTransportUnavailable: the transport is unreachable. Retryable.
	ErrTransportUnavailable ErrorCode = "transport_unavailable"
	// ErrTransportPublishFailed: the transport is reachable and refused this message.
	ErrTransportPublishFailed ErrorCode = "transport_publish_failed"

	// ErrOperationCancelled: the caller's context ended before the outcome was known.
	ErrOperationCancelled ErrorCode = "operation_cancelled"
	// ErrInternal: a bug in this module.
	ErrInternal ErrorCode = "internal_error"
	// ErrTaskNotFound: this process has no handler for the run's task.
	ErrTaskNotFound ErrorCode = "task_not_found"
	// ErrTaskFailed is the code of a failure if the handler's error has none.
	ErrTaskFailed ErrorCode = "task_failed"
	// ErrTaskPanicked: the handler panicked; the stack is in the failure's meta.
	ErrTaskPanicked ErrorCode = "task_panicked"
	// ErrTaskTimedOut: the attempt reached its timeout or its invocation's deadline.
	ErrTaskTimedOut ErrorCode = "task_timed_out"
	// ErrLeaseExpired: too many attempts of the run ended without an outcome.
	ErrLeaseExpired ErrorCode = "lease_expired"
	// ErrRunEnded: the run has ended and can no longer be reached. Such an error also matches [ErrValidationFailed].
	ErrRunEnded ErrorCode = "run_ended"
	// ErrRunFailed: a called run failed. Its failure is the cause.
	ErrRunFailed ErrorCode = "run_failed"
	// ErrRunCancelled: a called run was cancelled.
	ErrRunCancelled ErrorCode = "run_cancelled"
	// ErrWaitTimedOut: a wait reached its time limit. Every later attempt gets the same error; returned unchanged, it
	// fails the run without further retries.
	ErrWaitTimedOut ErrorCode = "wait_timed_out"
	// ErrTokenInvalid: the answer token is forged, expired, or of another environment.
	ErrTokenInvalid ErrorCode = "token_invalid"
	// ErrPayloadUnreadable: payload or output were stored through a [Codec] and cannot be opened by this process.
	ErrPayloadUnreadable ErrorCode = "payload_unreadable"
)

// ConflictKind is the kind of a lost race. It is an error too, for errors.Is.
type ConflictKind string

// Error returns the kind.
func (k ConflictKind) Error() string { return string(k) }

// The kinds of [ErrStorageConflict].
const (
	// ConflictEventSequence: the run has changed since it was read. Read it again and repeat.
	ConflictEventSequence ConflictKind = "event_sequence"
	// ConflictIdempotencyKey: another run owns the key.
	ConflictIdempotencyKey ConflictKind = "idempotency_key"
	// ConflictSingletonKey: another active run owns the key.
	ConflictSingletonKey ConflictKind = "singleton_key"
	// ConflictLeaseOwnership: another worker holds the lease, or nobody does.
	ConflictLeaseOwnership ConflictKind = "lease_ownership"
	// ConflictOutboxClaim: the claim on an outbox row has ended, or the row was superseded.
	ConflictOutboxClaim ConflictKind = "outbox_claim"
	// ConflictScheduleOccurrence: another tick or operator changed the occurrence or the schedule's record.
	ConflictScheduleOccurrence ConflictKind = "schedule_occurrence"
	// ConflictSignal: a signal with this name and ID but another body was sent before.
	ConflictSignal ConflictKind = "signal"
	// ConflictWait: the state that a suspension or signal was based on has changed. Read it again.
	ConflictWait ConflictKind = "wait"
	// ConflictFlow: the flow was closed, retried or changed since it was read.
	ConflictFlow ConflictKind = "flow"
	// ConflictPauses: a pause of the queue or task keeps the run from starting now, or the pauses have changed since they
	// were read.
	ConflictPauses ConflictKind = "pauses"
	// ConflictWrites: a condition of the application's own writes failed (see [TriggerOptions]); there is no run.
	ConflictWrites ConflictKind = "writes"
	// ConflictQueueCapacity: the bounded queue has no free slot.
	ConflictQueueCapacity ConflictKind = "queue_capacity"
)

// Error is the only error type that crosses a package boundary of this module. Messages never contain payloads or
// credentials. Branch on Code and Conflict (or errors.Is with their values), never on text.
type Error struct {
	Code       ErrorCode
	Conflict   ConflictKind      // set if and only if Code is ErrStorageConflict
	Message    string            // the fault
	Hint       string            // the reader's next step; may be empty
	Retryable  bool              // the same call may succeed later; no effect on a run when its handler returns it
	RetryAfter time.Duration     // with ErrOverloaded the time before the next try; else 0
	RunID      RunID             // the run the error is about; for a conflict on a key, its owner
	Meta       map[string]string // for people; programs branch on the fields above
	Cause      error             // the error of the layer below, down to the AWS error
}

// Error returns code, message and hint on one line. All methods accept a nil *Error, because a nil pointer returned as
// an error becomes a non-nil interface value.
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

// NewConflict returns [ErrStorageConflict] of this kind, retryable after reading again.
func NewConflict(kind ConflictKind, message string) *Error {
	return &Error{Code: ErrStorageConflict, Conflict: kind, Message: message, Retryable: true}
}

// CodeOf returns the outermost code in err, or "".
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
	// ErrShutdown: the worker stops; the run goes back to its queue and the attempt is not a failure.
	ErrShutdown = errors.New("runlane: worker is shutting down")
	// ErrLeaseLost: another worker owns the run. Results of this attempt are not recorded.
	ErrLeaseLost = errors.New("runlane: lease lost")
	// ErrTimeout: the attempt reached its time limit.
	ErrTimeout = errors.New("runlane: attempt timed out")
)

// ReleaseError is the error that [Release] and [Block] return; it may be wrapped.
type ReleaseError struct {
	Delay   time.Duration     // more than 0, at most MaxReleaseDelay; ignored with Waiting
	Reason  string            // at most MaxReasonBytes
	Meta    map[string]string // kept in the run's history
	Waiting *Waiting          // ends the wait and has its own time limit; nil for Release
}

// Error describes the request.
func (e *ReleaseError) Error() string {
	if e == nil {
		return "nil *runlane.ReleaseError"
	}
	if e.Waiting != nil {
		return "suspended: " + e.Reason
	}
	return "release for " + e.Delay.String() + ": " + e.Reason
}

// Release, returned from a handler, waits without failing: the run resumes after delay. It takes effect only if the
// handler returns it. A delay of 0, below 0 or above [MaxReleaseDelay] makes the attempt a failure.
func Release(delay time.Duration, reason string) error {
	return &ReleaseError{Delay: delay, Reason: reason}
}

// Block, returned from a handler, waits without a limit until an operator resumes the run. reason is the operator's
// task, at most [MaxPromptBytes]; a longer one makes the attempt a failure.
func Block(reason string) error {
	return &ReleaseError{Reason: reason, Waiting: &Waiting{For: []WaitingFor{WaitingBlocked}, Prompt: reason}}
}

// Suspended reports whether err ends the attempt but not the run: return such an error unchanged. It is true for errors
// of [Release] and [Block], and for calls of an attempt that have no answer yet. Every other error of such a call is an
// answer.
func Suspended(err error) bool {
	r, ok := errors.AsType[*ReleaseError](err)
	return ok && r != nil
}

// Permanent, returned from a handler, fails the run at once, without its remaining retries. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// RetryAfter, returned from a handler, counts as a failure and replaces the backoff by delay. RetryAfter(d, nil) is
// nil.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Delay: delay, Err: err}
}

// PermanentError is the error that [Permanent] returns, for tests and errors.AsType.
type PermanentError struct{ Err error }

// Error returns the wrapped error's text.
func (e *PermanentError) Error() string { return textOf(e.Unwrap()) }

// Unwrap returns the wrapped error.
func (e *PermanentError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// RetryAfterError is the error that [RetryAfter] returns, for tests and errors.AsType.
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

// Error returns the wrapped error's text.
func (e *RetryAfterError) Error() string { return textOf(e.Unwrap()) }

// Unwrap returns the wrapped error.
func (e *RetryAfterError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// textOf returns the text of an error that may be nil.
func textOf(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
