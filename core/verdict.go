package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// foreignFailure is what a failure record says of an error that is not a *runlane.Error, unless the task opts in,
// because foreign errors may quote payloads or credentials.
const foreignFailure = "Task failed."

// maxCodeBytes bounds an application's own code. A longer one, or one that is no text, is recorded as
// runlane.ErrTaskFailed.
const maxCodeBytes = 64

// verdict is what a handler's return means. Nothing else in this package inspects a handler's error.
type verdict struct {
	kind    verdictKind
	cause   error         // stopped: why the runtime ended the context
	delay   time.Duration // released, and a failure that chose its own delay
	chosen  bool          // a failure that chose its own delay
	final   bool          // a failure that must not be retried
	reason  string        // released
	meta    map[string]string
	failure runlane.Failure
	text    string // of the failure, for the log
}

// errorTexts say where the texts of the application's errors may stand.
type errorTexts struct {
	keep  bool // in the run, of errors that are not ours
	whole bool // in the run, of any error
	log   bool
}

type verdictKind int

const (
	verdictSucceeded verdictKind = iota + 1
	verdictFailed
	verdictReleased
	verdictStopped // the runtime ended the context and the handler returned because of it
)

// verdictOf tests err in this order. nil is a success also after ctx has ended, because the work was done.
//
//  1. the runtime ended ctx, and err is its error or cause
//  2. permanent
//  3. released
//  4. retry after
//  5. any other: a failure that may be retried
func verdictOf(ctx context.Context, err error, texts errorTexts) verdict {
	if err == nil {
		return verdict{kind: verdictSucceeded}
	}
	if isNil(err) {
		message := fmt.Sprintf(
			"The handler returned a nil %T, which is no nil error: declare the variable as error.",
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
	if r, ok := errors.AsType[*runlane.ReleaseError](err); ok && r != nil {
		return releaseVerdict(r)
	}
	if r, ok := errors.AsType[*runlane.RetryAfterError](err); ok && r != nil {
		v := failedWith(err, texts)
		v.chosen, v.delay = true, max(r.Delay, 0)
		return v
	}
	return failedWith(err, texts)
}

// failed is a failure whose message is ours, which may stand anywhere.
func failed(f runlane.Failure) verdict {
	return verdict{kind: verdictFailed, failure: f, text: f.Message}
}

// brokenVerdict is the verdict on a handler that did not return, or returned an error that cannot be read.
func brokenVerdict(message string, stack []byte) verdict {
	var meta map[string]string
	if stack != nil {
		meta = map[string]string{"stack": string(stack)}
	}
	return failed(runlane.NewFailure(runlane.ErrTaskPanicked, message, meta))
}

// endedByContext distinguishes the end of the attempt's context, however it was wrapped, from an error of the handler
// itself.
func endedByContext(ctx context.Context, err error) bool {
	return errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

func releaseVerdict(r *runlane.ReleaseError) verdict {
	if r.Delay <= 0 || r.Delay > runlane.MaxReleaseDelay {
		message := fmt.Sprintf("the handler released for %s; use more than 0 and at most %s", r.Delay,
			runlane.FormatDuration(runlane.MaxReleaseDelay))
		return failed(runlane.NewFailure(runlane.ErrValidationFailed, message, nil))
	}
	kept := runlane.NewFailure("", "", r.Meta) // for its limits
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
		v.text = runlane.NewFailure("", text, nil).Message // for its limits
	}
	return v
}

// wholeText is an error's text without its code, which stands beside it already, and for a panic the value.
func wholeText(err error, code runlane.ErrorCode) string {
	if p, _ := errors.AsType[*panicText](err); p != nil {
		return p.text
	}
	return strings.TrimPrefix(err.Error(), string(code)+": ")
}

// clipReason keeps a reason within runlane.MaxReasonBytes, and text.
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
