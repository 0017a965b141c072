package samtemplate

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/lane"
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
	functions      map[string]*lambdatest.Function
	waits          runlane.RunID // a run that has waited
}

func deployLocally(t *testing.T, what, metrics string) *stack {
	t.Helper()
	s := &stack{sqs: awstest.SQS(t), recorders: map[string]*recorder{}, functions: map[string]*lambdatest.Function{}}
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
		deployed := &lambdatest.Deployment{
			Role: role, Table: s.table, Queues: s.urls(), Endpoint: s.recorders[role].url,
		}
		s.functions[role] = lambdatest.New(lambdatest.Options{
			Program: program, Name: role, Timeout: 20 * time.Second, Concurrency: 8, Environment: deployed.Variables(map[string]string{
				programVariable: what, "AWS_REGION": s.sqs.Options().Region, functions.MetricsVariable: metrics,
			}),
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

func (s *stack) urls() map[runlane.QueueName]string {
	return map[runlane.QueueName]string{"plain": s.plain.URL, "ordered": s.ordered.URL}
}

// open is a program outside, whose clock is late by the given time, through a recorder if one is given.
func (s *stack) open(t *testing.T, late time.Duration, through *recorder) *core.Runtime {
	t.Helper()
	return s.openOn(t, late, through, func(*lane.Lane) {})
}

// openOn is open on a lane that was changed.
func (s *stack) openOn(t *testing.T, late time.Duration, through *recorder, change func(*lane.Lane)) *core.Runtime {
	t.Helper()
	cfg := awstest.Config(t)
	if through != nil {
		cfg.BaseEndpoint = aws.String(through.url)
	}
	l, err := awslane.New(cfg, awslane.Options{
		Table: s.table, Queues: s.urls(),
	})
	if err != nil {
		t.Fatal(err)
	}
	change(l)
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

func (s *stack) tick(t *testing.T) {
	t.Helper()
	tick := lambdatest.Handler[map[string]string, any](s.functions[functions.RoleTick])
	if _, err := tick(t.Context(), map[string]string{"detail-type": "Scheduled Event"}); err != nil {
		t.Fatal(err)
	}
}

// feed runs the event source mappings until the function that it returns is called.
func (s *stack) feed(t *testing.T) (stop func()) {
	t.Helper()
	mappings := &lambdatest.Mappings{Failed: func(err error) { t.Error(err) }}
	for _, url := range []string{s.plain.URL, s.ordered.URL} {
		mappings.Queue(s.sqs, url, &eventsource.QueueOptions{Concurrency: 2},
			lambdatest.Handler[events.SQSEvent, events.SQSEventResponse](s.functions[functions.RoleBridge]))
	}
	mappings.Stream(awstest.LocalStackDynamoDB(t), awstest.Streams(t), s.table, nil,
		lambdatest.Handler[events.DynamoDBEvent, events.DynamoDBEventResponse](s.functions[functions.RoleRelay]))
	t.Cleanup(mappings.Stop)
	return mappings.Stop
}
