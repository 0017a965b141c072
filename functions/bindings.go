package functions

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// clockDifference is how far the clocks of Lambda and of this environment may differ, in whole seconds.
const clockDifference = 3 * time.Second

func boundQueues() []runlane.QueueName {
	list, set := os.LookupEnv(BindingsVariable)
	if !set {
		return nil
	}
	names := []runlane.QueueName{}
	separates := func(r rune) bool { return r == ',' || r == ' ' }
	for _, name := range strings.FieldsFunc(list, separates) {
		names = append(names, runlane.QueueName(name))
	}
	return names
}

// checkInvocationTime rejects invocations that are too short for tasks of this function's own bindings; others may
// belong to a function with longer ones. A function learns its timeout only from an invocation's deadline.
func (p *program) checkInvocationTime(
	ctx context.Context, rt *core.Runtime, began time.Time, event events.SQSEvent,
) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	measured := deadline.Sub(began).Round(time.Second) // Lambda needs some of the first second
	bindings := p.bindingsToCheck(ctx, rt, event)
	if p.bound != nil && len(bindings) == 0 {
		return nil // it has none
	}
	err := rt.CheckInvocation(measured, bindings...)
	if err != nil && rt.CheckInvocation(measured+clockDifference, bindings...) == nil {
		return nil // maybe the clocks differ; a record without enough time is handed back alone
	}
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log(err)
	}
	return err
}

// bindingsToCheck are the existing bindings of the function's list, or without a list the event's; nil, for all, if one
// is unknown.
func (p *program) bindingsToCheck(
	ctx context.Context, rt *core.Runtime, event events.SQSEvent,
) (bindings []runlane.QueueName) {
	for _, name := range p.bound {
		if own, ok := lane.CarrierOf(rt.Lane().Transport, name); ok {
			bindings = append(bindings, own)
		}
	}
	var sources []runlane.QueueName
	for i := range event.Records {
		source, ok := bindingOf(rt, event.Records[i].EventSourceARN)
		if ok && p.bound != nil && !slices.Contains(bindings, source) && p.misrouted.first(string(source)) {
			slog.WarnContext(ctx, "wakeups arrive through a binding that is not this function's own, for example while "+
				"a deployment moves a queue; else correct RUNLANE_BINDINGS", "binding", source)
		}
		if !ok && p.bound == nil {
			return nil
		}
		sources = append(sources, source)
	}
	if p.bound != nil {
		return bindings
	}
	return sources
}

func bindingOf(rt *core.Runtime, source string) (binding runlane.QueueName, ok bool) {
	transport, can := lane.As[interface {
		BindingOf(queue string) (runlane.QueueName, bool)
	}](rt.Lane().Transport)
	if !can {
		return "", false
	}
	return transport.BindingOf(source)
}

// misrouted remembers which bindings and queues were logged as wrong, so that each is logged once.
type misrouted struct{ logged sync.Map }

func (a *misrouted) first(what string) bool {
	_, logged := a.logged.LoadOrStore(what, true)
	return !logged
}

// warn logs once if a queue's wakeups arrive through another binding than they would be sent with: another program of
// the environment has other bindings.
func (a *misrouted) warn(ctx context.Context, rt *core.Runtime, source string, queue runlane.QueueName) {
	came, known := bindingOf(rt, source)
	if carrier, ok := lane.CarrierOf(rt.Lane().Transport, queue); !known || ok && carrier == came {
		return
	}
	if a.first(string(came) + " " + string(queue)) {
		slog.WarnContext(ctx, "wakeups arrive through another binding than this function uses; give all programs "+
			"of the environment the same RUNLANE_QUEUES", "queue", queue, "binding", came)
	}
}
