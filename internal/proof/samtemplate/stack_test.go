package samtemplate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/lambdaruntime"
)

// stack is what the template deploys, on local AWS: a table, two queues and three functions, each a separate process that is
// recorded by a separate recorder.
type stack struct {
	table          string
	plain, ordered infra.Queue
	sqs            *sqs.Client
	recorders      map[string]*recorder // by role
	outside        *recorder            // of a program that only triggers
	operator       *recorder            // of an operator's
	reader         *recorder            // of one that only looks
	functions      map[string]*lambdaruntime.Function
}

func deployLocally(t *testing.T, what, metrics string) *stack {
	t.Helper()
	s := &stack{sqs: awstest.SQS(t), recorders: map[string]*recorder{}, functions: map[string]*lambdaruntime.Function{}}
	s.table = awstest.StreamedTable(t, awstest.LocalStackDynamoDB(t))
	s.plain, s.ordered = awstest.Queue(t, s.sqs, false), awstest.Queue(t, s.sqs, true)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{s.table: "${Table.Arn}", s.plain.URL: "${WorkQueue.Arn}", s.ordered.URL: "${FifoWorkQueue.Arn}"}
	for _, program := range []**recorder{&s.outside, &s.operator, &s.reader} {
		*program = record(t, os.Getenv("AWS_ENDPOINT_URL"), resources)
	}
	for _, role := range []string{functions.RoleBridge, functions.RoleRelay, functions.RoleTick} {
		s.recorders[role] = record(t, os.Getenv("AWS_ENDPOINT_URL"), resources)
		s.functions[role] = lambdaruntime.New(lambdaruntime.Options{
			Program: program, Name: role, Timeout: 20 * time.Second, Concurrency: 8, Environment: []string{
				programVariable + "=" + what, functions.RoleVariable + "=" + role, "AWS_ENDPOINT_URL=" + s.recorders[role].url,
				awslane.TableVariable + "=" + s.table, awslane.QueuesVariable + "=plain=" + s.plain.URL + ",ordered=" + s.ordered.URL,
				"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=" + s.sqs.Options().Region, "AWS_NEW_RETRIES_2026=true",
				"AWS_EC2_METADATA_DISABLED=true", functions.MetricsVariable + "=" + metrics,
			},
		})
		t.Cleanup(func() {
			s.functions[role].Close()
			if t.Failed() {
				t.Logf("log of %s:\n%s", role, s.functions[role].Log())
			}
		})
	}
	return s
}

// open is a program outside, whose clock is late by the given time, through a recorder if one is given.
func (s *stack) open(t *testing.T, late time.Duration, through *recorder) *core.Runtime {
	t.Helper()
	cfg := awstest.Config(t)
	if through != nil {
		cfg.BaseEndpoint = aws.String(through.url)
	}
	l, err := awslane.New(cfg, awslane.Options{
		Table: s.table, Queues: map[runlane.QueueName]string{"plain": s.plain.URL, "ordered": s.ordered.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{act.Handle(perform), one.Handle(perform)},
		World:    &core.World{Now: func() time.Time { return time.Now().Add(-late) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// invoke calls a function and returns its response; a failed invocation is an error.
func invoke[Response any](ctx context.Context, f *lambdaruntime.Function, event any) (response Response, err error) {
	answer, err := f.InvokeJSON(ctx, event)
	if err != nil {
		return response, err
	}
	if answer.Failure != "" {
		return response, errors.New(answer.Failure + ": " + string(answer.Payload))
	}
	return response, json.Unmarshal(answer.Payload, &response)
}

func (s *stack) tick(t *testing.T) {
	t.Helper()
	if _, err := invoke[any](t.Context(), s.functions[functions.RoleTick], map[string]string{"detail-type": "Scheduled Event"}); err != nil {
		t.Fatal(err)
	}
}

// feed runs the event source mappings until the function that it returns is called.
func (s *stack) feed(t *testing.T) (stop func()) {
	t.Helper()
	described, err := awstest.LocalStackDynamoDB(t).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(s.table)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var mappings sync.WaitGroup
	for _, url := range []string{s.plain.URL, s.ordered.URL} {
		mappings.Go(func() {
			err := eventsource.Queue(ctx, s.sqs, url, &eventsource.QueueOptions{Concurrency: 2},
				func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
					return invoke[events.SQSEventResponse](ctx, s.functions[functions.RoleBridge], event)
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
	mappings.Go(func() {
		err := eventsource.Stream(ctx, awstest.Streams(t), aws.ToString(described.Table.LatestStreamArn), nil,
			func(ctx context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
				return invoke[events.DynamoDBEventResponse](ctx, s.functions[functions.RoleRelay], event)
			})
		if err != nil {
			t.Error(err)
		}
	})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			mappings.Wait()
		})
	}
	t.Cleanup(stop)
	return stop
}
