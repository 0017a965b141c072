package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
)

// CheckLease refuses a lease outside of least and most; 0 means the default.
func CheckLease(lease, least, most time.Duration) error {
	if lease != 0 && (lease < least || lease > most) {
		return fail.Input(
			"use "+runlane.FormatDuration(least)+" to "+runlane.FormatDuration(most), "the lease is %s", lease)
	}
	return nil
}

// Failure is core.ClaimFailure.
type Failure struct {
	Code      runlane.ErrorCode
	Message   string
	Meta      map[string]string
	Permanent bool
	After     *time.Duration
}

// Err returns the failure in the form of a handler's error. text is the default message.
func (f *Failure) Err(text string) (failure, refused error) {
	if f.After != nil && (*f.After < 0 || f.Permanent) {
		return nil, fail.Input("give a delay only for a failure that is retried, and not below 0", "the delay of the failure is %s", *f.After)
	}
	failure = &runlane.Error{
		Code:    cmp.Or(f.Code, runlane.ErrTaskFailed),
		Message: cmp.Or(f.Message, text),
		Meta:    f.Meta,
	}
	switch {
	case f.Permanent:
		failure = runlane.Permanent(failure)
	case f.After != nil:
		failure = runlane.RetryAfter(*f.After, failure)
	}
	return failure, nil
}

// CheckValue refuses a value that a record cannot hold.
func CheckValue(kind runlane.StepKind, value json.RawMessage) error {
	if len(value) > runlane.MaxPayloadBytes || value != nil && !json.Valid(value) {
		return fail.Input("send one JSON value", "the value of the %s is not JSON, or too large", kind)
	}
	return nil
}

// Undefined returns the error for a task that clients cannot claim here.
func Undefined(task runlane.TaskID) error {
	return &runlane.Error{
		Code:    runlane.ErrTaskNotFound,
		Message: fmt.Sprintf("clients claim no runs of task %q here", task),
		Hint:    "define it in core.Options.Tasks, or in the file of \"runlane serve --tasks\"",
	}
}
