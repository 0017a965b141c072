package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// emulatorQueue is bound to a fresh SQS queue in every session.
const emulatorQueue runlane.QueueName = "peers"

// emulator is local AWS: one table for all sessions, told apart by environment.
type emulator struct {
	dynamodb *dynamodb.Client
	sqs      *sqs.Client
	table    string
}

// awsSubjects is Runlane on DynamoDB and SQS, where local AWS is named and on this machine: nothing here may cost
// anybody money.
func awsSubjects(ctx context.Context, _ *place) ([]*subject, func() error, error) {
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		return nil, nil, unavailable(
			"AWS_ENDPOINT_URL names no local AWS: make local-up starts one, .local/env names it",
		)
	}
	direct := os.Getenv("RUNLANE_LOCAL_DYNAMODB") // DynamoDB Local itself, nearer to DynamoDB's own speed
	if direct == "" {
		direct = endpoint
	}
	for _, address := range []string{endpoint, direct} {
		if !onThisMachine(address) {
			return nil, nil, unavailable("%s is not on this machine: this program only ever uses emulated AWS", address)
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithBaseEndpoint(endpoint))
	if err != nil {
		return nil, nil, err
	}
	cfg = awslane.Tune(cfg)
	e := &emulator{
		table: freshName(),
		sqs:   sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = aws.String(endpoint) }),
	}
	e.dynamodb = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.DisableValidateResponseChecksum = aws.String(direct), true // it sends none with errors
		// it keeps a data base, and a lock, for each access key
		if direct != endpoint {
			o.Credentials = credentials.NewStaticCredentialsProvider("AKIA"+rand.Text()[:16], "test", "")
		}
	})
	table := infra.TableInput(e.table)
	table.StreamSpecification = nil // DynamoDB Local would look through what it has kept at every request
	if _, err := e.dynamodb.CreateTable(ctx, table); err != nil {
		return nil, nil, err
	}
	release := func() error { // cleaning up outlives an interrupt
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return infra.DeleteTable(ctx, e.dynamodb, e.table)
	}
	waiter := dynamodb.NewTableExistsWaiter(e.dynamodb, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay = 250 * time.Millisecond
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &e.table}, time.Minute); err != nil {
		return nil, nil, errors.Join(err, release())
	}
	s := &subject{
		name: awsName, group: emulated, fewest: 20, open: e.open,
		setup: "dynamostore and sqstransport as awslane sets them up, on emulators in this machine's memory",
	}
	return []*subject{s}, release, nil
}

func (e *emulator) open(ctx context.Context, handle func(job)) (session, error) {
	queue, err := infra.CreateQueue(ctx, e.sqs, freshName(), nil)
	if err != nil {
		return nil, err
	}
	remove := func(ctx context.Context) error { return infra.DeleteQueue(ctx, e.sqs, queue) }
	opened, err := e.openOn(ctx, queue.URL, handle, remove)
	if err != nil {
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
	}
	return opened, nil
}

func (e *emulator) openOn(
	ctx context.Context, queueURL string, handle func(job), after func(context.Context) error,
) (session, error) {
	transport, err := sqstransport.New(e.sqs, map[runlane.QueueName]string{emulatorQueue: queueURL},
		&sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	l, err := lane.New(dynamostore.New(e.dynamodb, e.table, nil), transport, nil)
	if err != nil {
		return nil, err
	}
	return openRunlane(ctx, l, runlane.Environment(freshName()), emulatorQueue, handle, after)
}

func freshName() string { return "peers-" + strings.ToLower(rand.Text()[:12]) }

// onThisMachine reports whether an endpoint is a loopback address.
func onThisMachine(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := parsed.Hostname()
	return host == "localhost" || host == "localhost.localstack.cloud" || net.ParseIP(host).IsLoopback()
}
