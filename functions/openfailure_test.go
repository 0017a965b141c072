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

// While a deployment moves the queue slow to a longer function, the function that had it still gets wakeups of it: it
// judges the tasks that its own bindings carry, and says once what comes.
func TestFits_WakeupsOfAnotherFunctionsBinding_AreNoReasonToRefuse(t *testing.T) {
	rt := openTwoBindings(t)
	var text strings.Builder
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(was)
	for _, c := range []struct {
		own, queue, says string
		invocation       time.Duration
	}{
		{"shared", "shop-slow", "", time.Minute}, // a name that its binding carries
		{"default", "shop-slow", "", time.Minute},
		{"default", "shop-slow", `task "greet" needs`, 2 * time.Second},
		{"slow", "shop-slow", `task "report" has a timeout of 2m`, time.Minute},
		{"slow", "shop-work", `task "report" has a timeout of 2m`, time.Minute},
		{"slow,default", "shop-work", `task "report" has a timeout of 2m`, time.Minute},
	} {
		t.Setenv(BindingsVariable, c.own)
		text.Reset()
		p := &program{logger: slog.New(slog.DiscardHandler), bound: bound()}
		for range 2 {
			if err := fitsEvent(t, p, rt, c.queue, c.invocation); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("own %s, event of %s, %s: %v", c.own, c.queue, c.invocation, err)
			}
		}
		want := 1
		if carrier, _ := (twoBindings{}).Carrier(runlane.QueueName(strings.TrimPrefix(c.queue, "shop-"))); strings.Contains(c.own, string(carrier)) {
			want = 0
		}
		if said := strings.Count(text.String(), "a binding that is not this function's own"); said != want {
			t.Errorf("own %s, event of %s: said %d times: %s", c.own, c.queue, said, text.String())
		}
	}
}

// Another program sends wakeups of a queue by another binding than this one would: they are executed, and it is said once.
func TestBridge_WakeupsByAnotherBinding_AreToldOnce(t *testing.T) {
	rt := openTwoBindings(t)
	var text strings.Builder
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(was)
	var a misrouted
	for _, c := range []struct{ source, queue string }{
		{"shop-work", "shared"}, {"shop-slow", "slow"}, {"another", "slow"}, {"shop-work", "slow"}, {"shop-work", "slow"},
	} {
		a.wakeup(t.Context(), rt, "arn:aws:sqs:us-east-1:123456789012:"+c.source, runlane.QueueName(c.queue))
	}
	if strings.Count(text.String(), "queue=slow binding=default") != 1 || strings.Count(text.String(), "\n") != 1 {
		t.Error(text.String())
	}
}

func openTwoBindings(t *testing.T) *core.Runtime {
	t.Helper()
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
	return rt
}

func fitsEvent(t *testing.T, p *program, rt *core.Runtime, queue string, invocation time.Duration) error {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), began.Add(invocation))
	defer cancel()
	return p.fits(ctx, rt, began, events.SQSEvent{Records: []events.SQSMessage{{
		EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queue,
	}}})
}

// A program with two bridges: the one with short invocations must not refuse what only the other one executes.
func TestFits_OnlyTasksOfTheEventsQueueAreJudged(t *testing.T) {
	t.Parallel()
	rt := openTwoBindings(t)
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
		p := &program{logger: slog.New(slog.DiscardHandler)}
		err := fitsEvent(t, p, rt, c.queue, c.invocation)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: %v", c.queue, c.invocation, err)
		}
	}
}
