package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// foreignFailure is the recorded message of an error that is not a *runlane.Error, unless the task opts in: foreign
// errors may quote payloads or credentials.
const foreignFailure = "Task failed."

// maxCodeBytes limits an application's own code. A longer or non-text one is recorded as runlane.ErrTaskFailed.
const maxCodeBytes = 64

// verdict is the meaning of a handler's return. No other code in this package inspects a handler's error.
type verdict struct {
	kind    verdictKind
	cause   error            // stopped: why the runtime ended the context
	delay   time.Duration    // released, and a failure that chose its delay
	mailed  int64            // of such a wait: the number of signals when the handler looked
	calls   []string         // of such a wait: the calls with missing ends
	wait    *runlane.Waiting // released until something happens, not for the delay
	asked   []*callWaits     // released: all releases that the handler returned, even joined ones
	lost    string           // released: the code of a failure that was joined
	lingers bool             // stopped: the handler may still be running
	chosen  bool             // a failure that chose its delay
	final   bool             // a failure that must not be retried
	reason  string           // released
	meta    map[string]string
	failure runlane.Failure
	text    string // of the failure, for the log
}

// errorTexts are the places for the texts of the application's errors.
type errorTexts struct {
	keep  bool // in the run, for errors that are not ours
	whole bool // in the run, for any error
	log   bool
}

type verdictKind int

const (
	verdictSucceeded verdictKind = iota + 1
	verdictFailed
	verdictReleased
	verdictStopped // the runtime ended the context and the handler returned because of it
)

// verdictOf tests err in this order. nil is a success even after ctx has ended, because the work was done.
//
//  1. the runtime ended ctx, and err is its error or cause
//  2. permanent
//  3. released: if several are joined, until the first of them ends
//  4. retry after
//  5. any other: a failure that may be retried
func verdictOf(ctx context.Context, err error, texts errorTexts) verdict {
	if err == nil {
		return verdict{kind: verdictSucceeded}
	}
	if isNil(err) {
		message := fmt.Sprintf(
			"The handler returned a nil %T, which is not a nil error: declare the variable as error.",
			err,
		)
		return failed(runlane.NewFailure(runlane.ErrTaskFailed, message, nil))
	}
	if ctx.Err() != nil && endedByContext(ctx, err) {
		return verdict{kind: verdictStopped, cause: context.Cause(ctx)}
	}
	if p, ok := errors.AsType[*runlane.PermanentError](err); ok && p != nil {
		v := failedWith(err, texts)
		v.final = true
		return v
	}
	if asked := releasesIn(err, nil); len(asked) > 0 {
		return releasedFor(err, asked)
	}
	if r, ok := errors.AsType[*runlane.RetryAfterError](err); ok && r != nil {
		v := failedWith(err, texts)
		v.chosen, v.delay = true, max(r.Delay, 0)
		return v
	}
	return failedWith(err, texts)
}

// failed is a failure with a message of ours, which may appear anywhere.
func failed(f runlane.Failure) verdict {
	return verdict{kind: verdictFailed, failure: f, text: f.Message}
}

// brokenVerdict is for a handler that did not return, or returned an unreadable error.
func brokenVerdict(message string, stack []byte) verdict {
	var meta map[string]string
	if stack != nil {
		meta = map[string]string{"stack": string(stack)}
	}
	return failed(runlane.NewFailure(runlane.ErrTaskPanicked, message, meta))
}

// endedByContext reports whether err comes from the end of the attempt's context, however wrapped.
func endedByContext(ctx context.Context, err error) bool {
	return errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// releasesIn finds the releases and suspensions in a handler's error, even joined ones, in the order of errors.As.
func releasesIn(err error, found []*callWaits) []*callWaits {
	switch wrapper := err.(type) { //nolint:errorlint // the tree is walked
	case *callWaits:
		return append(found, wrapper)
	case *runlane.ReleaseError:
		if wrapper != nil {
			return append(found, &callWaits{ReleaseError: wrapper})
		}
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			return releasesIn(inner, found)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			found = releasesIn(inner, found)
		}
	}
	return found
}

// releasedFor is the verdict on joined releases. It fails if one of them does.
func releasedFor(err error, asked []*callWaits) verdict {
	v := releaseVerdict(asked[0].ReleaseError)
	for _, r := range asked[1:] {
		if v.kind != verdictReleased {
			return v
		}
		also := releaseVerdict(r.ReleaseError)
		if also.kind != verdictReleased {
			return also
		}
		v.reason = clipReason(v.reason + "; " + also.reason)
		if len(v.meta) > 0 && len(also.meta) > 0 {
			maps.Copy(also.meta, v.meta)
		}
		if len(also.meta) > 0 {
			v.meta = runlane.NewFailure("", "", also.meta).Meta // applies its limits
		}
	}
	v.asked = asked
	if r, ok := errors.AsType[*runlane.RetryAfterError](err); ok && r != nil {
		v.lost = string(cmp.Or(runlane.CodeOf(r), runlane.ErrTaskFailed))
	}
	return v
}

func releaseVerdict(r *runlane.ReleaseError) verdict {
	kept := runlane.NewFailure("", "", r.Meta) // applies its limits
	if r.Waiting != nil {
		if err := r.Waiting.Validate(); err != nil {
			return failed(runlane.NewFailure(runlane.ErrValidationFailed, messageOf(err), nil))
		}
		return verdict{
			kind:   verdictReleased,
			wait:   r.Waiting.Kept(),
			mailed: -1,
			reason: clipReason(r.Reason),
			meta:   kept.Meta,
		}
	}
	if r.Delay <= 0 || r.Delay > runlane.MaxReleaseDelay {
		message := fmt.Sprintf("the handler released for %s; use more than 0 and at most %s", r.Delay,
			runlane.FormatDuration(runlane.MaxReleaseDelay))
		return failed(runlane.NewFailure(runlane.ErrValidationFailed, message, nil))
	}
	return verdict{kind: verdictReleased, delay: r.Delay, reason: clipReason(r.Reason), meta: kept.Meta}
}

// failedWith keeps the permitted parts of a handler's error.
func failedWith(err error, texts errorTexts) verdict {
	code := runlane.CodeOf(err)
	if code == "" || len(code) > maxCodeBytes || runlane.ValidateKey("code", string(code)) != nil {
		code = runlane.ErrTaskFailed
	}
	text := foreignFailure
	if texts != (errorTexts{}) {
		text = wholeText(err, code)
	}
	message := foreignFailure
	var meta map[string]string
	if texts.keep {
		message = text
	}
	if e, ok := asError(err); ok {
		message, meta = e.Message, e.Meta
		if p, _ := errors.AsType[*panicText](err); p != nil && texts.keep {
			message = text
		}
	}
	if texts.whole {
		message = text
	}
	v := failed(runlane.NewFailure(code, message, meta))
	if texts.log {
		v.text = runlane.NewFailure("", text, nil).Message // applies its limits
	}
	return v
}

// wholeText is an error's text without its code, which is shown separately, or a panic's value.
func wholeText(err error, code runlane.ErrorCode) string {
	if p, _ := errors.AsType[*panicText](err); p != nil {
		return p.text
	}
	return strings.TrimPrefix(err.Error(), string(code)+": ")
}

// clipReason makes a reason valid text of at most runlane.MaxReasonBytes.
func clipReason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\ufffd")
	if len(reason) <= runlane.MaxReasonBytes {
		return reason
	}
	const mark = "…"
	cut := runlane.MaxReasonBytes - len(mark)
	for cut > 0 && reason[cut]&0xC0 == 0x80 {
		cut--
	}
	return reason[:cut] + mark
}

// look is the state that a suspension depends on; nil if it waits for neither signals nor ends.
func (v *verdict) look() *lane.Look {
	if v.kind != verdictReleased || v.wait == nil {
		return nil
	}
	look := &lane.Look{Signals: -1, Calls: v.calls}
	if v.wait.Has(runlane.WaitingSignal) || v.wait.Has(runlane.WaitingAnything) {
		look.Signals = v.mailed
	}
	if look.Signals < 0 && len(look.Calls) == 0 {
		return nil
	}
	return look
}

// panicText is a handler's panic value, as the cause of the attempt's failure.
type panicText struct{ text string }

func (e *panicText) Error() string { return e.text }

// texts are the runtime's, with the task's option.
func (x *execution) texts() errorTexts {
	texts := x.rt.texts
	texts.whole = x.handler.Task.ErrorMessages
	return texts
}

// panicError keeps the value in the run only if it cannot quote user data (faults of the Go runtime) or texts are kept.
func (x *execution) panicError(value any, stack []byte) error {
	message := "The handler panicked."
	if fault, ok := value.(runtime.Error); ok {
		_ = caught(func() { message = "The handler panicked: " + fault.Error() }) // the value may be a false runtime.Error
	}
	e := &runlane.Error{
		Code:    runlane.ErrTaskPanicked,
		Message: message,
		RunID:   x.started.ID,
		Meta:    map[string]string{"stack": string(stack)},
	}
	if x.texts() != (errorTexts{}) {
		e.Cause = &panicText{fmt.Sprintf("The handler panicked: %v", value)}
	}
	return e
}
