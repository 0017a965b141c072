package functions

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/causes"
	"github.com/runlane/runlane-go/lane"
)

// mayPass reports an error after which opening may succeed later: an outage, or a start that ran out of time.
func mayPass(err error) bool {
	e, ok := errors.AsType[*runlane.Error](err)
	return ok && (e.Retryable || e.Code == runlane.ErrOperationCancelled)
}

// clockDifference is how far the clocks of Lambda and of this environment may be apart (docs/internals/decisions.md,
// Programs), in whole seconds.
const clockDifference = 3 * time.Second

// fits refuses invocations that are too short for a task whose wakeups come from the queue of the event: another
// function with longer invocations may serve another queue. Lambda tells a function's timeout only by each invocation's
// deadline.
func (p *program) fits(ctx context.Context, rt *core.Runtime, began time.Time, event events.SQSEvent) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	measured := deadline.Sub(began).Round(time.Second) // the service needs some of the first second
	sources := sourcesOf(rt, event)
	err := rt.CheckInvocation(measured, sources...)
	if err != nil && rt.CheckInvocation(measured+clockDifference, sources...) == nil {
		return nil // it may be the clock; a record that has too little time is handed back alone
	}
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log(err)
	}
	return err
}

// sourcesOf are the bindings of the queues that an event comes from, none where one is not known.
func sourcesOf(rt *core.Runtime, event events.SQSEvent) (sources []runlane.QueueName) {
	transport, ok := lane.As[interface {
		BindingOf(queue string) (runlane.QueueName, bool)
	}](rt.Lane().Transport)
	if !ok {
		return nil
	}
	for i := range event.Records {
		source, ok := transport.BindingOf(event.Records[i].EventSourceARN)
		if !ok {
			return nil
		}
		sources = append(sources, source)
	}
	return sources
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
