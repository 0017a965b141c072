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

// clockDifference is how far the clocks of Lambda and of this environment may be apart, in whole seconds.
const clockDifference = 3 * time.Second

// bound are the queues of BindingsVariable: nil without the variable.
func bound() []runlane.QueueName {
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

// fits refuses invocations that are too short for a task of this function's own bindings: another function with longer
// invocations may serve another one. Lambda tells a function's timeout only by each invocation's deadline.
func (p *program) fits(ctx context.Context, rt *core.Runtime, began time.Time, event events.SQSEvent) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	measured := deadline.Sub(began).Round(time.Second) // the service needs some of the first second
	judged := p.judged(ctx, rt, event)
	if p.bound != nil && len(judged) == 0 {
		return nil // it has none
	}
	err := rt.CheckInvocation(measured, judged...)
	if err != nil && rt.CheckInvocation(measured+clockDifference, judged...) == nil {
		return nil // it may be the clock; a record that has too little time is handed back alone
	}
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log(err)
	}
	return err
}

// judged are the bindings whose tasks have to fit: those of the function's list that there are, and without a list
// those that the event comes from, nil (which is all) where one is not known.
func (p *program) judged(ctx context.Context, rt *core.Runtime, event events.SQSEvent) (judged []runlane.QueueName) {
	for _, name := range p.bound {
		if own, ok := lane.CarrierOf(rt.Lane().Transport, name); ok {
			judged = append(judged, own)
		}
	}
	var sources []runlane.QueueName
	for i := range event.Records {
		source, ok := bindingOf(rt, event.Records[i].EventSourceARN)
		if ok && p.bound != nil && !slices.Contains(judged, source) && p.misrouted.first(string(source)) {
			slog.WarnContext(ctx, "wakeups come by a binding that is not this function's own, as while a deployment "+
				"moves a queue; else correct RUNLANE_BINDINGS", "binding", source)
		}
		if !ok && p.bound == nil {
			return nil
		}
		sources = append(sources, source)
	}
	if p.bound != nil {
		return judged
	}
	return sources
}

// bindingOf names the binding of the queue that a record comes from.
func bindingOf(rt *core.Runtime, source string) (binding runlane.QueueName, ok bool) {
	transport, can := lane.As[interface {
		BindingOf(queue string) (runlane.QueueName, bool)
	}](rt.Lane().Transport)
	if !can {
		return "", false
	}
	return transport.BindingOf(source)
}

// misrouted remembers of which bindings and queues it was logged that wakeups come by a wrong binding: each once.
type misrouted struct{ told sync.Map }

func (a *misrouted) first(what string) bool {
	_, told := a.told.LoadOrStore(what, true)
	return !told
}

// wakeup tells of a queue whose wakeups come by another binding than the one that carries them here: another program of
// the environment has other bindings. Workers say the same.
func (a *misrouted) wakeup(ctx context.Context, rt *core.Runtime, source string, queue runlane.QueueName) {
	came, known := bindingOf(rt, source)
	if carrier, ok := lane.CarrierOf(rt.Lane().Transport, queue); !known || ok && carrier == came {
		return
	}
	if a.first(string(came) + " " + string(queue)) {
		slog.WarnContext(ctx, "wakeups come by another binding than this function sends them with; give all programs "+
			"of the environment the same RUNLANE_QUEUES", "queue", queue, "binding", came)
	}
}
