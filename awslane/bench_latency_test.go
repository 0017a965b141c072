package awslane_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// latencyRuns are measured at least.
const latencyRuns = 60

// BenchmarkLatency splits the time of a simple run by its steps: one iteration is one run from trigger to success, alone on its lane,
// its requests timed around the SDK's clients. A line has the median of each step with its quartiles in milliseconds; rest is what the
// program itself takes. The acknowledgement is part of a trigger and runs beside the delivery: receive is from the end of the send to
// the message, and below zero where the message is there before the answer of the send.
//
//	go test -run '^$' -bench Latency ./awslane
func BenchmarkLatency(b *testing.B) {
	timeline := &timeline{}
	var handled span
	rt, ended := openTimed(b, timeline, nil, []runlane.Handler{efficiencyTask.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
		handled.begin = time.Now()
		handled.end = time.Now()
		return nil
	})}, 1)
	steps := map[string]map[string][]float64{"trigger": {}, "delivery": {}, "run": {}}
	one := func(keep bool) {
		timeline.clear()
		began := time.Now()
		result, err := rt.Trigger(b.Context(), efficiencyTask.With(struct{}{}), nil)
		triggered := span{began, time.Now()}
		if err != nil {
			b.Fatal(err)
		}
		if err := ended.wait(b.Context(), result.Run.ID); err != nil {
			b.Fatal(err)
		}
		run := span{began, time.Now()}
		r := timeline.ofOneRun(b)
		if !keep {
			return
		}
		note := func(of, step string, took time.Duration) {
			steps[of][step] = append(steps[of][step], float64(took.Microseconds())/1000)
		}
		note("trigger", "commit", r.create.took())
		note("trigger", "send", r.send.took())
		note("trigger", "acknowledge", r.acknowledge.took())
		note("trigger", "rest", triggered.took()-r.create.took()-r.send.took()-r.acknowledge.took())
		note("trigger", "all", triggered.took())
		delivery := span{r.send.end, r.outcome.end}
		receive := r.receive.end.Sub(r.send.end)
		note("delivery", "receive", receive)
		note("delivery", "read", r.read.took())
		note("delivery", "claim", r.claim.took())
		note("delivery", "handler", handled.took())
		note("delivery", "outcome", r.outcome.took())
		note("delivery", "rest", delivery.took()-receive-r.read.took()-r.claim.took()-handled.took()-r.outcome.took())
		note("delivery", "all", delivery.took())
		note("run", "trigger to success", run.took())
	}
	one(false) // connections are made, and how the table is divided is read
	var all []float64
	for b.Loop() {
		one(true)
		all = steps["run"]["trigger to success"]
	}
	for len(all) < latencyRuns {
		one(true)
		all = steps["run"]["trigger to success"]
	}
	b.ReportMetric(0, "ns/op")
	for of, names := range steps {
		for step, values := range names {
			unit := "ms/" + of + "-" + step
			if of == "run" {
				unit = "ms/trigger-to-success"
				b.ReportMetric(quantile(values, 0.99), unit+"-p99")
			}
			b.ReportMetric(quantile(values, 0.25), unit+"-q1")
			b.ReportMetric(quantile(values, 0.5), unit)
			b.ReportMetric(quantile(values, 0.75), unit+"-q3")
		}
	}
}

// span is a stretch of time.
type span struct{ begin, end time.Time }

func (s span) took() time.Duration { return s.end.Sub(s.begin) }

// timeline notes when requests began and ended, the retries of the SDK included.
type timeline struct {
	mu       sync.Mutex
	requests []timedRequest // by their ends
}

type timedRequest struct {
	span
	input any
	found bool // a receive with a message
}

func (t *timeline) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = nil
}

func (t *timeline) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("time", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		r := timedRequest{span: span{begin: time.Now()}, input: in.Parameters}
		out, metadata, err := next.HandleInitialize(ctx, in)
		r.end = time.Now()
		if received, ok := out.Result.(*sqs.ReceiveMessageOutput); ok && err == nil {
			r.found = len(received.Messages) > 0
		}
		t.mu.Lock()
		t.requests = append(t.requests, r)
		t.mu.Unlock()
		return out, metadata, err
	}), middleware.Before)
}

// runTimes are the requests of one simple run.
type runTimes struct{ create, send, acknowledge, receive, read, claim, outcome span }

// ofOneRun tells the requests of the run apart that is the only one since clear.
func (t *timeline) ofOneRun(b *testing.B) (times runTimes) {
	b.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	count := map[*span]int{}
	note := func(into *span, r *timedRequest) { *into, count[into] = r.span, count[into]+1 }
	commits := []*span{&times.create, &times.claim, &times.outcome}
	for i := range t.requests {
		switch r := &t.requests[i]; r.input.(type) {
		case *dynamodb.TransactWriteItemsInput:
			if len(commits) == 0 {
				b.Fatal("a run commits more than three times")
			}
			note(commits[0], r)
			commits = commits[1:]
		case *sqs.SendMessageBatchInput:
			note(&times.send, r)
		case *dynamodb.UpdateItemInput:
			note(&times.acknowledge, r)
		case *dynamodb.QueryInput:
			note(&times.read, r)
		case *sqs.ReceiveMessageInput:
			if r.found {
				note(&times.receive, r)
			}
		}
	}
	for _, s := range []*span{&times.create, &times.claim, &times.outcome, &times.send, &times.acknowledge, &times.read, &times.receive} {
		if count[s] != 1 {
			b.Fatalf("a step of a run was sent %d times, in %d requests", count[s], len(t.requests))
		}
	}
	return times
}

// openTimed opens and works a runtime whose requests are timed. wrap may put something over the transport.
func openTimed(
	b *testing.B, times *timeline, wrap func(lane.Transport) lane.Transport, handlers []runlane.Handler, concurrency int,
) (*core.Runtime, *endings) {
	b.Helper()
	cfg := awslane.Tune(awstest.Config(b))
	db := dynamodb.New(awstest.DynamoDB(b).Options(), func(o *dynamodb.Options) {
		o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, times.middleware)
	})
	queues := sqs.New(awstest.SQS(b).Options(), func(o *sqs.Options) {
		o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, times.middleware)
	})
	queue := awstest.Queue(b, queues, false)
	var transport lane.Transport
	transport, err := sqstransport.New(queues, map[runlane.QueueName]string{runlane.DefaultQueue.Name: queue.URL}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if wrap != nil {
		transport = wrap(transport)
	}
	l, err := lane.New(dynamostore.New(db, awstest.Table(b, db), nil), transport, &lane.Options{Environment: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	ended := &endings{waiting: map[runlane.RunID]chan struct{}{}}
	rt, err := core.Open(b.Context(), l, &core.Options{
		Handlers: handlers, Hooks: []core.Hook{ended.note}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: concurrency, NoTick: true}) }() // ends with stop
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-worked, rt.Close(context.WithoutCancel(ctx))); err != nil {
			b.Error(err)
		}
	})
	return rt, ended
}
