package functions

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// twoBindings carry the queue slow and all others, as SQS queues do.
type twoBindings struct{ lane.Transport }

func (twoBindings) Carrier(queue runlane.QueueName) (runlane.QueueName, bool) {
	if queue == "slow" {
		return "slow", true
	}
	return "default", true
}

func (twoBindings) BindingOf(arn string) (runlane.QueueName, bool) {
	binding, ok := map[string]runlane.QueueName{"shop-work": "default", "shop-slow": "slow"}[arn[strings.LastIndex(arn, ":")+1:]]
	return binding, ok
}

// A program with two bridges: the one with short invocations must not refuse what only the other one executes.
func TestFits_OnlyTasksOfTheEventsQueueAreJudged(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	l.Transport = twoBindings{l.Transport}
	handle := func(context.Context, *runlane.Attempt, string) error { return nil }
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{
		runlane.NewTask("report", &runlane.TaskOptions[string]{Timeout: 2 * time.Minute, Queue: runlane.Queue{Name: "slow"}}).Handle(handle),
		runlane.NewTask("greet", &runlane.TaskOptions[string]{Queue: runlane.Queue{Name: "shared"}}).Handle(handle),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	for _, c := range []struct {
		queue, says string
		invocation  time.Duration
	}{
		{"shop-work", "", time.Minute},
		{"shop-work", `task "greet" needs`, 2 * time.Second},
		{"shop-slow", `task "report" has a timeout of 2m`, time.Minute},
		{"shop-slow", "", 5 * time.Minute},
		{"another", `task "report" has a timeout of 2m`, time.Minute}, // not bound: all are judged
	} {
		began := time.Now()
		ctx, cancel := context.WithDeadline(t.Context(), began.Add(c.invocation))
		p := &program{logger: slog.New(slog.DiscardHandler)}
		err := p.fits(ctx, rt, began, events.SQSEvent{Records: []events.SQSMessage{{
			EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + c.queue,
		}}})
		cancel()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: %v", c.queue, c.invocation, err)
		}
	}
}
