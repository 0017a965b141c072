package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functionurl"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

const environment = "bench"

// task is that of testdata/noop.
var task = runlane.NewTask("noop", &runlane.TaskOptions[struct{}]{Queue: runlane.Queue{Name: "webhooks"}})

// programs are paths.
type programs struct{ bridge, hello, noop, server string }

// lab is a table, a queue and the programs.
type lab struct {
	rt       *core.Runtime
	dynamodb *dynamodb.Client
	sqs      *sqs.Client
	table    string
	queue    infra.Queue
	programs
	variables []string
}

func newLab(ctx context.Context, p programs) (l *lab, err error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		return nil, errors.New("no local AWS: set AWS_ENDPOINT_URL, or run make bench-functions")
	}
	direct := os.Getenv("RUNLANE_LOCAL_DYNAMODB") // DynamoDB Local itself, nearer to DynamoDB's own speed
	if direct == "" {
		direct = endpoint
	}
	l = &lab{programs: p, sqs: sqs.NewFromConfig(cfg)}
	l.dynamodb = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.DisableValidateResponseChecksum = aws.String(direct), true
	})
	defer func() { // cleaning up outlives an interrupt
		if err != nil {
			l.close()
		}
	}()
	name := "bench-" + strings.ToLower(rand.Text()[:10])
	table := infra.TableInput(name)
	table.StreamSpecification = nil // DynamoDB Local would look through what it has kept at every request
	if _, err := l.dynamodb.CreateTable(ctx, table); err != nil {
		return nil, err
	}
	l.table = name
	waiter := dynamodb.NewTableExistsWaiter(l.dynamodb, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay = 250 * time.Millisecond
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		return nil, err
	}
	if l.queue, err = infra.CreateQueue(ctx, l.sqs, name, nil); err != nil {
		return nil, err
	}
	queues := map[runlane.QueueName]string{"webhooks": l.queue.URL}
	deployed := &lambdatest.Deployment{
		Role: functions.RoleBridge, Environment: environment, Table: name, Queues: queues, DynamoDB: direct,
	}
	l.variables = deployed.Variables(map[string]string{
		"AWS_ACCESS_KEY_ID":        os.Getenv("AWS_ACCESS_KEY_ID"),
		"AWS_SECRET_ACCESS_KEY":    os.Getenv("AWS_SECRET_ACCESS_KEY"),
		"AWS_REGION":               cfg.Region,
		webhooks.EndpointsVariable: "shop=http://127.0.0.1:9",
		webhooks.SecretVariable:    "secret",
	})
	transport, err := sqstransport.New(l.sqs, queues, nil)
	if err != nil {
		return nil, err
	}
	opened, err := lane.New(dynamostore.New(l.dynamodb, name, nil), transport, &lane.Options{Environment: environment})
	if err != nil {
		return nil, err
	}
	l.rt, err = core.Open(ctx, opened, &core.Options{Logger: slog.New(slog.DiscardHandler)})
	return l, err
}

func (l *lab) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var faults []error
	if l.rt != nil {
		faults = append(faults, l.rt.Close(ctx))
	}
	if l.queue.URL != "" {
		faults = append(faults, infra.DeleteQueue(ctx, l.sqs, l.queue))
	}
	if l.table != "" {
		faults = append(faults, infra.DeleteTable(ctx, l.dynamodb, l.table))
	}
	if err := errors.Join(faults...); err != nil {
		fmt.Fprintln(os.Stderr, "bench-functions: cleaning up:", err)
	}
}

// start runs a program until it has answered its first event, and returns how long it took to ask for it, and to
// answer.
func (l *lab) start(ctx context.Context, program string) (asked, answered time.Duration, err error) {
	variables, event := l.variables, `{"Records":[]}`
	switch program {
	case l.hello:
		event = `"hello"`
	case l.server:
		variables = append(slices.Clone(variables), functions.RoleVariable+"="+functionurl.Role) // the last counts
		event = `{"rawPath":"/v1/runs","requestContext":{"http":{"method":"GET"},` +
			`"authorizer":{"iam":{"userArn":"arn:aws:iam::123456789012:user/ada"}}}}`
	}
	f := lambdatest.New(lambdatest.Options{Program: program, Environment: variables})
	defer f.Close()
	begin := time.Now()
	answer, err := f.Invoke(ctx, []byte(event))
	if err != nil {
		return 0, 0, err
	}
	if answer.Failure != "" {
		return 0, 0, fmt.Errorf("%s: %s: %s\n%s", program, answer.Failure, answer.Payload, f.Log())
	}
	return f.Starts()[0], time.Since(begin), nil
}

// starts alternates between a program and the bare one, so that what else the machine does hits both.
func (l *lab) starts(ctx context.Context, program string, limit float64, rounds int) ([]figure, error) {
	var own, hello, ratios, answers []float64
	for round := range rounds + 2 {
		first, second := l.hello, program
		if round%2 == 1 {
			first, second = second, first
		}
		took := map[string]float64{}
		for _, started := range []string{first, second} {
			asked, answered, err := l.start(ctx, started)
			if err != nil {
				return nil, err
			}
			took[started] = asked.Seconds() * 1000
			if started == program {
				answers = append(answers, answered.Seconds()*1000)
			}
		}
		if round < 2 {
			continue // files come from the disk
		}
		own, hello = append(own, took[program]), append(hello, took[l.hello])
		ratios = append(ratios, took[program]/took[l.hello])
	}
	spread := fmt.Sprintf(
		"%d starts, 10 %% above %.1f ms; first answer after %.1f ms",
		rounds,
		quantile(own, 0.9),
		median(answers),
	)
	name := "" // the bridge's figures are compared with those of earlier versions
	if program == l.server {
		name = "server, "
	}
	return []figure{
		{name + "start to first next, median", median(own), "ms", maxStart, spread},
		{
			name + "ratio to a bare function",
			median(ratios),
			"",
			limit,
			fmt.Sprintf("median of rounds; the bare one starts in %.1f ms", median(hello)),
		},
	}, nil
}

// memory is what a bridge holds that was started and invoked, and has nothing to do.
func (l *lab) memory(ctx context.Context) ([]figure, error) {
	f := lambdatest.New(lambdatest.Options{Program: l.bridge, Environment: l.variables})
	defer f.Close()
	if err := l.batch(ctx, f, 0); err != nil {
		return nil, err
	}
	idle, err := residentMemory(f.Processes()[0])
	return []figure{{"idle bridge, resident", idle, "MB", maxMemory, "after its first invocation"}}, err
}

// records lets one bridge execute runs that do nothing, and counts its processor time.
func (l *lab) records(ctx context.Context) ([]figure, error) {
	folder, err := os.MkdirTemp("", "bench-functions")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "processor")
	f := lambdatest.New(lambdatest.Options{
		Program:     l.noop,
		Environment: append(slices.Clone(l.variables), "PROFILE="+path),
	})
	defer f.Close()
	const warm, batches, size = 10, 100, 10
	var before time.Duration
	for n := range warm + batches {
		if n == warm {
			if before, err = processorTime(f.Processes()[0]); err != nil {
				return nil, err
			}
			f.Signal(syscall.SIGUSR1)
		}
		if err := l.batch(ctx, f, size); err != nil {
			return nil, err
		}
	}
	after, err := processorTime(f.Processes()[0])
	if err != nil {
		return nil, err
	}
	f.Signal(syscall.SIGUSR1)
	profile, err := readProfile(ctx, l.noop, path)
	if err != nil {
		return nil, err
	}
	all := float64(after-before) / float64(time.Microsecond) / (batches * size)
	note := fmt.Sprintf(
		"%d records in batches of %d; with what the SDK computes for requests %.0f µs, with network, kernel and "+
			"collector %.0f µs",
		batches*size,
		size,
		all*profile.handler,
		all,
	)
	return []figure{{"bridge, processor time a record", all * profile.own, "µs", maxRecord, note}}, nil
}

// batch triggers runs and hands their wakeups to the bridge as one event. What SQS got of them is of no interest.
func (l *lab) batch(ctx context.Context, f *lambdatest.Function, size int) error {
	event := events.SQSEvent{}
	for n := range size {
		result, err := l.rt.Trigger(ctx, task.With(struct{}{}), &runlane.TriggerOptions{Deferred: true})
		if err != nil {
			return err
		}
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: strconv.Itoa(n), ReceiptHandle: "none", EventSourceARN: l.queue.ARN,
			Body: fmt.Sprintf(`{"v":1,"environment":%q,"runId":%q,"queue":"webhooks","requestedAt":%q}`,
				environment, result.Run.ID, result.Run.CreatedAt.Format(time.RFC3339Nano)),
			Attributes: map[string]string{"ApproximateReceiveCount": "1"},
		})
	}
	answer, err := f.InvokeJSON(ctx, event)
	if err != nil {
		return err
	}
	if answer.Failure != "" || string(answer.Payload) != `{"batchItemFailures":[]}` {
		return fmt.Errorf("a batch was answered with %q %s\n%s", answer.Failure, answer.Payload, f.Log())
	}
	return nil
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}
