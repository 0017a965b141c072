package functions

import (
	"errors"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/causes"
)

// reopenAfter is how long an error is kept that an operator has to repair: a queue, an index, a right.
const reopenAfter = 10 * time.Second

// kept reports an error of opening that invocations still answer with. One that may pass, an outage or a start that ran
// out of time, is not kept.
func (p *program) kept() bool {
	e, ok := errors.AsType[*runlane.Error](p.err)
	passes := ok && (e.Retryable || e.Code == runlane.ErrOperationCancelled)
	return p.err != nil && !passes && wall().Sub(p.failed) < reopenAfter
}

// wall is the time by the wall: the monotonic clock may stand still while Lambda keeps an environment frozen.
func wall() time.Time { return time.Now().Round(0) }

// told is what an error is logged by.
type told struct {
	code    runlane.ErrorCode
	message string
}

// log logs why the runtime cannot open, once for each code and message.
func (p *program) log(err error) {
	code, message, hint, cause := runlane.ErrInternal, err.Error(), "", error(nil)
	what := told{code, message}
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		code, hint, cause = e.Code, e.Hint, e.Cause
		what = told{code, e.Message}
		if error(e) == err { //nolint:errorlint // else there is more to say than its message
			message = e.Message
		}
	}
	if p.logged[what] {
		return
	}
	if p.logged == nil {
		p.logged = map[told]bool{}
	}
	p.logged[what] = true
	attrs := []any{"code", code, "error", message, "hint", hint}
	if more := causes.Untold(message, cause); len(more) > 0 {
		attrs = append(attrs, "cause", strings.Join(more, "; "))
	}
	p.logger.Error("the runtime cannot open", attrs...)
}
