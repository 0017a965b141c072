package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

const (
	// deliveryTime is what a function has for a batch: a run of it is leased for so long, and 5 s.
	deliveryTime = 40 * time.Second
	tickTime     = time.Minute
)

func TestMain(m *testing.M) {
	if crash.Child(scenarios, childLane) {
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// queueNames are those of the queues that every lane has.
var queueNames = []runlane.QueueName{runlane.DefaultQueue.Name, crash.Narrow.Name, crash.Paced.Name}

// awsLane is one process's way to an environment of a table, and its queues.
type awsLane struct {
	table       string
	environment runlane.Environment
	urls        map[runlane.QueueName]string
	broken      string // the protection that is off in the process that dies
	client      *dynamodb.Client
	sqs         *sqs.Client

	queues *queues                                      // of the process that prepares
	items  map[string][]map[string]types.AttributeValue // by partition key, as last read

	trap     *crash.Trap // of the process that dies
	answered sync.Map    // operations
}

// lanes makes a table for the lanes of one scenario, each of which is an environment. One shard of each index is enough for
// a few runs, and saves most of what a tick reads.
func lanes(t *testing.T, q *queues) func(t *testing.T) crash.Lane {
	t.Helper()
	client := awstest.DynamoDB(t)
	api := sqs.NewFromConfig(awstest.Config(t), func(o *sqs.Options) { o.BaseEndpoint = aws.String(q.server.URL) })
	table := awstest.Table(t, client)
	var made atomic.Int64
	return func(t *testing.T) crash.Lane {
		t.Helper()
		l := &awsLane{table: table, client: client, sqs: api, queues: q, urls: map[runlane.QueueName]string{}}
		l.environment = runlane.Environment(fmt.Sprintf("e%d", made.Add(1)))
		for _, name := range queueNames {
			l.urls[name] = q.url(l.sqsName(name))
		}
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: string(l.environment) + ":config"}, "sk": &types.AttributeValueMemberS{Value: "shards"},
			"wr": &types.AttributeValueMemberN{Value: "1"}, "rd": &types.AttributeValueMemberN{Value: "1"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func (l *awsLane) sqsName(name runlane.QueueName) string {
	return l.table + "-" + string(l.environment) + "-" + string(name)
}

func childLane(place map[string]string, trap *crash.Trap) crash.Lane {
	l := &awsLane{
		trap: trap, table: place["table"], environment: runlane.Environment(place["environment"]), broken: place["broken"],
		urls: map[runlane.QueueName]string{},
	}
	for _, name := range queueNames {
		l.urls[name] = place[string(name)]
	}
	return l
}

// Place implements [crash.Lane].
func (l *awsLane) Place() map[string]string {
	place := map[string]string{"table": l.table, "environment": string(l.environment), "broken": l.broken}
	for name, url := range l.urls {
		place[string(name)] = url
	}
	return place
}

// Environ implements [crash.Lane].
func (l *awsLane) Environ() []string {
	key, err := l.client.Options().Credentials.Retrieve(context.Background())
	if err != nil {
		panic(err)
	}
	return []string{
		"GODEBUG=tracebackancestors=20", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=" + key.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_DYNAMODB=" + aws.ToString(l.client.Options().BaseEndpoint),
		"AWS_ENDPOINT_URL_SQS=" + l.queues.server.URL, "AWS_EC2_METADATA_DISABLED=true", "GOMAXPROCS=2",
	}
}

// Open makes, in the process that dies, what a program makes: the lane that awslane composes, from a configuration with one
// more middleware.
func (l *awsLane) Open(p *crash.Process) (*lane.Lane, error) {
	if p.Dies() {
		cfg, err := config.LoadDefaultConfig(context.Background(), config.WithAPIOptions([]func(*middleware.Stack) error{l.install}),
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), "test", "")))
		if err != nil {
			return nil, err
		}
		l.sqs = sqs.NewFromConfig(cfg)
		return awslane.New(cfg, awslane.Options{Environment: l.environment, Table: l.table, Queues: l.urls, Logger: p.Logger()})
	}
	transport, err := sqstransport.New(l.sqs, l.urls, &sqstransport.Options{Logger: p.Logger()})
	if err != nil {
		return nil, err
	}
	store := dynamostore.New(l.client, l.table, &dynamostore.Options{Now: p.Now, RequestTimeout: awstest.RequestTimeout})
	return lane.New(store, transport, &lane.Options{Environment: l.environment})
}

// effect is what a child says of one.
type effect struct {
	Operation string  `json:"o"`
	Frames    []frame `json:"f"`
}

// install is for aws.Config.APIOptions.
func (l *awsLane) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("trap", l.handle), middleware.After)
}

func (l *awsLane) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	operation := awsmiddleware.GetOperationName(ctx)
	if !operations[operation] {
		return next.HandleInitialize(ctx, in)
	}
	frames := parseStack(string(debug.Stack()), root())
	made := l.trap.Effect(chain(frames)+": "+operation, effect{operation, frames})
	if breaks := broken[l.broken]; breaks != nil {
		breaks(in.Parameters)
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	made()
	l.answered.Store(operation, true)
	return out, metadata, err
}

// Deliver is a function that takes messages: in the process that dies, once.
func (l *awsLane) Deliver(ctx context.Context, p *crash.Process, once bool) error {
	for range 20 {
		idle := true
		for _, name := range queueNames {
			received, err := l.invoke(ctx, p, l.urls[name])
			if err != nil {
				return err
			}
			idle = idle && received == 0
		}
		if idle || once || p.Dies() {
			return nil
		}
	}
	return errors.New("messages came again and again")
}

// invoke is what Lambda does with a queue's messages: the function gets a batch and its deadline, and what it does not hand
// back is deleted.
func (l *awsLane) invoke(ctx context.Context, p *crash.Process, url string) (received int, err error) {
	out, err := l.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil || len(out.Messages) == 0 {
		return 0, err
	}
	event, receipts := events.SQSEvent{}, map[string]string{}
	for i := range out.Messages {
		m := &out.Messages[i]
		receipts[aws.ToString(m.MessageId)] = aws.ToString(m.ReceiptHandle)
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body),
			EventSourceARN: sourceOf(url), Attributes: m.Attributes,
		})
	}
	limited := ctx
	if p.Dies() {
		var cancel context.CancelFunc
		limited, cancel = limit(ctx, p, deliveryTime)
		defer cancel()
	}
	response, err := functions.Bridge(p.Runtime)(limited, event)
	if err != nil {
		return 0, err
	}
	p.Mark("the bridge's answer")
	for _, failure := range response.BatchItemFailures {
		delete(receipts, failure.ItemIdentifier)
	}
	var entries []sqstypes.DeleteMessageBatchRequestEntry
	for _, id := range slices.Sorted(maps.Keys(receipts)) {
		entries = append(entries, sqstypes.DeleteMessageBatchRequestEntry{Id: &id, ReceiptHandle: aws.String(receipts[id])})
	}
	if len(entries) > 0 {
		_, err = l.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
	}
	return len(out.Messages), err
}

// limit is the deadline of an invocation, by the process's clock.
func limit(ctx context.Context, p *crash.Process, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithoutCancel(ctx), p.Now().Add(d))
}

// sourceOf is the ARN of a queue's URL.
func sourceOf(url string) string {
	_, name, _ := strings.Cut(url, "000000000000/")
	return "arn:aws:sqs:us-east-1:000000000000:" + name
}

// Tick maintains as a function: but that one keeps a share of its time free, by the real clock, and has none left in a
// process whose clock is far ahead.
func (l *awsLane) Tick(ctx context.Context, p *crash.Process) error {
	if p.Moved() > 5*time.Minute {
		_, err := p.Runtime.Tick(ctx, nil)
		return err
	}
	limited, cancel := limit(ctx, p, tickTime)
	defer cancel()
	return functions.Tick(p.Runtime)(limited)
}

// Advance implements [crash.Lane].
func (l *awsLane) Advance(d time.Duration) { l.each(func(of *queue, _ time.Time) { of.ahead += d }) }

// Lose is what SQS promises not to do.
func (l *awsLane) Lose() error {
	l.each(func(of *queue, _ time.Time) { of.held = nil })
	return nil
}

// each calls a function with each queue and its time.
func (l *awsLane) each(do func(of *queue, now time.Time)) {
	for _, name := range queueNames {
		l.queues.with(l.sqsName(name), do)
	}
}

// Runs reads the items of the environment.
func (l *awsLane) Runs(*crash.Process) (ids []runlane.RunID, err error) {
	l.items = map[string][]map[string]types.AttributeValue{}
	pages := dynamodb.NewScanPaginator(l.client, &dynamodb.ScanInput{TableName: &l.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(context.Background())
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			pk, ok := strings.CutPrefix(textOf(item["pk"]), string(l.environment)+":")
			if !ok {
				continue
			}
			l.items[pk] = append(l.items[pk], item)
			if id, ok := strings.CutPrefix(pk, "run:"); ok && textOf(item["sk"]) == "run" {
				ids = append(ids, runlane.RunID(id))
			}
		}
	}
	return ids, nil
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Faults finds slots that are held although no run has them, without an end or with one that lies ahead, and what is left
// of runs and flows that are pruned.
func (l *awsLane) Faults(e *crash.End) {
	for pk, items := range l.items {
		kind, _, _ := strings.Cut(pk, ":")
		if len(e.Runs) == 0 && len(e.Gone) > 0 && slices.Contains([]string{"run", "idem", "single", "flow"}, kind) {
			e.Fault("%d items are left under %s", len(items), pk)
		}
		if kind != "slot" {
			continue
		}
		for _, item := range items {
			holder := runlane.RunID(textOf(item["ru"]))
			if run := e.Runs[holder]; run != nil && !run.Status.Terminal() {
				continue
			}
			if until, reserved := item["un"].(*types.AttributeValueMemberN); !reserved || until.Value > fmt.Sprint(e.Now().UnixMilli()) {
				e.Fault("a slot is held by %s, which has ended", holder)
			}
		}
	}
}
