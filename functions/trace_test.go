package functions_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
)

type invocationKey struct{}

// Each invocation is told with its end; the bridge's links the traces of its wakeups, and its attempts are inside.
func TestFunctions_TellATracerOfTheirInvocations(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var invoked []core.Work
	attempts, ended := 0, 0
	tracer := func(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
		mu.Lock()
		defer mu.Unlock()
		if w.Kind == core.WorkAttempt && ctx.Value(invocationKey{}) == functions.RoleBridge {
			attempts++
		}
		if w.Kind != core.WorkInvocation {
			return ctx, nil
		}
		invoked = append(invoked, *w)
		return context.WithValue(ctx, invocationKey{}, w.Name), func(core.WorkEnd) {
			mu.Lock()
			defer mu.Unlock()
			ended++
		}
	}
	p := openWith(t, nil, &core.Options{Tracer: tracer})
	event := events.SQSEvent{}
	for _, id := range []string{"a", "b"} {
		carrier := map[string]string{"traceparent": id}
		made, err := p.Trigger(t.Context(), greet.With(id), &runlane.TriggerOptions{TraceCarrier: carrier})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(wakeup(made.Run.ID), "}") + `,"traceCarrier":{"traceparent":"` + id + `"}}`
		event.Records = append(event.Records, message(id, text, standardARN, 1))
	}
	if response, err := functions.Bridge(p.Runtime)(t.Context(), event); err != nil || len(failures(response)) > 0 {
		t.Fatal(response, err)
	}
	if err := functions.Tick(p.Runtime)(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream := events.DynamoDBEvent{Records: inserts(1, images(t, "prod", deferred)...)}
	if _, err := functions.Relay(p.Runtime)(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	for _, link := range invoked[0].Links {
		links[link["traceparent"]] = ""
	}
	if len(invoked) != 3 || ended != 3 || attempts != 2 || !maps.Equal(links, map[string]string{"a": "", "b": ""}) ||
		invoked[1].Name != functions.RoleTick || invoked[2].Name != functions.RoleRelay || invoked[2].Count != 1 {
		t.Errorf("%d ended, %d attempts inside, of %+v", ended, attempts, invoked)
	}
}
