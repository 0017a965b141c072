package functions

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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
	switch queue {
	case "slow":
		return "slow", true
	case "gone":
		return "", false
	}
	return "default", true
}

func (twoBindings) BindingOf(arn string) (runlane.QueueName, bool) {
	binding, ok := map[string]runlane.QueueName{"shop-work": "default", "shop-slow": "slow"}[arn[strings.LastIndex(arn, ":")+1:]]
	return binding, ok
}

// While a deployment moves the queue slow to a longer function, the function that had it still gets wakeups of it: it
// judges the tasks that its own bindings carry, and says once what comes.
func TestCheckInvocationTime_WakeupsOfAnotherFunctionsBinding_AreNoReasonToRefuse(t *testing.T) {
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
		{"", "shop-slow", "", time.Second}, // its last queue moved away: nothing is its own
		{"", "shop-work", "", time.Second},
		{"gone", "shop-slow", "", time.Second}, // a name that no binding carries
		{"slow,default", "shop-work", `task "report" has a timeout of 2m`, time.Minute},
	} {
		t.Setenv(BindingsVariable, c.own)
		text.Reset()
		p := &program{logger: slog.New(slog.DiscardHandler), bound: boundQueues()}
		for range 2 {
			if err := checkEventTime(t, p, rt, c.queue, c.invocation); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
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
		a.warn(t.Context(), rt, "arn:aws:sqs:us-east-1:123456789012:"+c.source, runlane.QueueName(c.queue))
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

func checkEventTime(t *testing.T, p *program, rt *core.Runtime, queue string, invocation time.Duration) error {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), began.Add(invocation))
	defer cancel()
	return p.checkInvocationTime(ctx, rt, began, events.SQSEvent{Records: []events.SQSMessage{{
		EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queue,
	}}})
}

// A program with two bridges: the one with short invocations must not refuse what only the other one executes.
func TestCheckInvocationTime_OnlyTasksOfTheEventsQueueCount(t *testing.T) {
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
		{"another", `task "report" has a timeout of 2m`, time.Minute}, // not bound: all are bindings
	} {
		p := &program{logger: slog.New(slog.DiscardHandler)}
		err := checkEventTime(t, p, rt, c.queue, c.invocation)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: %v", c.queue, c.invocation, err)
		}
	}
}

// lacking answers as SQS does where a queue was deleted, until it is made again.
type lacking struct {
	lane.Transport
	missing *bool
}

func (l lacking) Start(ctx context.Context, o lane.StartOptions) error {
	if *l.missing {
		return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: `there is no queue for "default"`}
	}
	return l.Transport.Start(ctx, o)
}

// An environment that starts while a queue is missing opens when the queue is there again, and asks at most once in 10 s.
func TestRuntime_WhatWasMissingIsThereAgain_Opens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing, opened := true, 0
		open := func(ctx context.Context) (*core.Runtime, error) {
			opened++
			l := memlane.New()
			l.Transport = lacking{l.Transport, &missing}
			return core.Open(ctx, l, &core.Options{})
		}
		var text strings.Builder
		tick := newHandler(RoleTick, open, slog.New(slog.NewTextHandler(&text, nil))).(func(context.Context) error)
		for range 25 {
			if err := tick(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no queue") {
				t.Fatalf("without the queue: %v", err)
			}
			time.Sleep(time.Second)
		}
		if said := strings.Count(text.String(), "cannot open"); opened != 3 || said != 1 {
			t.Errorf("asked %d times and logged %d times in 25 s: %s", opened, said, text.String())
		}
		missing = false
		time.Sleep(time.Minute)
		if err := tick(t.Context()); err != nil || opened != 4 {
			t.Errorf("a minute later, with the queue: %v, asked %d times", err, opened)
		}
	})
}

// Two faults may have one code. Each is logged, and once.
func TestLog_AnotherFaultOfACode_IsSaid(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	p := &program{logger: slog.New(slog.NewTextHandler(&text, nil))}
	for _, message := range []string{"secret A cannot be read", "secret B cannot be read", "secret A cannot be read"} {
		p.log(&runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Retryable: true})
	}
	if n := strings.Count(text.String(), "\n"); n != 2 || !strings.Contains(text.String(), "secret B") {
		t.Errorf("%d lines: %s", n, text.String())
	}
}
