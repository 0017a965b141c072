package functions

import (
	"errors"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/causes"
)

// reopenAfter is how long an error that an operator has to repair is kept: a missing queue, index or right.
const reopenAfter = 10 * time.Second

// keepsError reports that invocations still return the error of opening. Temporary errors, an outage or a timeout at
// the start, are not kept.
func (p *program) keepsError() bool {
	e, ok := errors.AsType[*runlane.Error](p.err)
	passes := ok && (e.Retryable || e.Code == runlane.ErrOperationCancelled)
	return p.err != nil && !passes && wallClock().Sub(p.failed) < reopenAfter
}

// wallClock is the time without the monotonic clock, which may stand still while Lambda freezes an environment.
func wallClock() time.Time { return time.Now().Round(0) }

type logKey struct {
	code    runlane.ErrorCode
	message string
}

// log logs why the runtime cannot open, once for each code and message.
func (p *program) log(err error) {
	code, message, hint, cause := runlane.ErrInternal, err.Error(), "", error(nil)
	what := logKey{code, message}
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		code, hint, cause = e.Code, e.Hint, e.Cause
		what = logKey{code, e.Message}
		if error(e) == err { //nolint:errorlint // else its message is incomplete
			message = e.Message
		}
	}
	if p.logged[what] {
		return
	}
	if p.logged == nil {
		p.logged = map[logKey]bool{}
	}
	p.logged[what] = true
	attrs := []any{"code", code, "error", message, "hint", hint}
	if more := causes.Omitted(message, cause); len(more) > 0 {
		attrs = append(attrs, "cause", strings.Join(more, "; "))
	}
	p.logger.Error("the runtime cannot open", attrs...)
}
