package functions

import (
	"errors"

	"github.com/runlane/runlane-go"
)

// mayPass reports an error after which opening again is worth it: an outage, or a start that ran out of time.
func mayPass(err error) bool {
	e, ok := errors.AsType[*runlane.Error](err)
	return ok && (e.Retryable || e.Code == runlane.ErrOperationCancelled)
}

// log says what keeps the runtime from opening, once for each code.
func (p *program) log(err error) {
	code, message, hint := runlane.ErrInternal, err.Error(), ""
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		code, message, hint = e.Code, e.Message, e.Hint
	}
	if code == p.logged {
		return
	}
	p.logged = code
	p.logger.Error("the runtime cannot open", "code", code, "error", message, "hint", hint)
}
