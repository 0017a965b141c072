package functions_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/memlane"
)

// One opener serves the three functions; which of them a process is, RUNLANE_FUNCTION says.
func ExampleStart() {
	handler := greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })

	functions.Start(func(ctx context.Context) (*core.Runtime, error) {
		l, err := awslane.FromEnv(ctx)
		if err != nil {
			return nil, err
		}
		return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{handler}})
	})
}

// Another function of the same runtime: one that answers how many runs wait, when it is asked.
func ExampleStartRole() {
	type question struct{ Queue runlane.QueueName }

	functions.StartRole("backlog", func(ctx context.Context) (*core.Runtime, error) {
		l, err := awslane.FromEnv(ctx)
		if err != nil {
			return nil, err
		}
		return core.Open(ctx, l, nil)
	}, func(rt *core.Runtime) (func(context.Context, question) (int64, error), error) {
		return func(ctx context.Context, asked question) (int64, error) {
			stats, err := rt.Queues().Stats(ctx, asked.Queue)
			return int64(stats.Waiting), err
		}, nil
	})
}

// A worker in a container has its secrets before its runtime opens: RUNLANE_SECRETS is worker=ARN,ARN there. Here it is
// not set, so none is read.
func ExampleWithSecrets() {
	open := functions.WithSecrets("worker", func(ctx context.Context) (*core.Runtime, error) {
		return core.Open(ctx, memlane.New(), &core.Options{Logger: slog.New(slog.DiscardHandler)})
	})
	ctx := context.Background()
	rt, err := open(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(rt.Close(ctx))
	// Output: <nil>
}

// The handlers are plain functions, for tests and for programs with their own main.
func ExampleBridge() {
	ctx := context.Background()
	handler := greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{handler}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	if _, err := rt.Trigger(ctx, greet.With("Ada"), &runlane.TriggerOptions{RunID: "run_1", Deferred: true}); err != nil {
		panic(err)
	}

	bridge := functions.Bridge(rt)
	response, err := bridge(ctx, events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "m_1", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:default",
		Body: `{"v":1,"environment":"default","runId":"run_1","queue":"` + string(greet.Definition().Queue.Name) +
			`","requestedAt":"2026-03-01T12:00:00Z"}`,
	}}})
	fmt.Println(len(response.BatchItemFailures), "handed back,", err)
	run, err := rt.Runs().Get(ctx, "run_1")
	fmt.Println(run.Status, err)
	// Output:
	// 0 handed back, <nil>
	// succeeded <nil>
}

// A program with its own main chooses the handler by itself. Start does the same, and reports what keeps it from opening.
func ExampleTick() {
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	handlers := map[string]any{
		functions.RoleBridge: functions.Bridge(rt),
		functions.RoleRelay:  functions.Relay(rt),
		functions.RoleTick:   functions.Tick(rt),
	}
	tick := handlers[functions.RoleTick].(func(context.Context) error)
	fmt.Println(tick(ctx))
	// Output: <nil>
}
