package functions

import (
	"errors"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/causes"
)

// mayPass reports an error after which opening may succeed later: an outage, or a start that ran out of time.
func mayPass(err error) bool {
	e, ok := errors.AsType[*runlane.Error](err)
	return ok && (e.Retryable || e.Code == runlane.ErrOperationCancelled)
}

// log logs why the runtime cannot open, once for each code.
func (p *program) log(err error) {
	code, message, hint, cause := runlane.ErrInternal, err.Error(), "", error(nil)
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		code, hint, cause = e.Code, e.Hint, e.Cause
		if error(e) == err { //nolint:errorlint // else there is more to say than its message
			message = e.Message
		}
	}
	if code == p.logged {
		return
	}
	p.logged = code
	attrs := []any{"code", code, "error", message, "hint", hint}
	if more := causes.Untold(message, cause); len(more) > 0 {
		attrs = append(attrs, "cause", strings.Join(more, "; "))
	}
	p.logger.Error("the runtime cannot open", attrs...)
}
