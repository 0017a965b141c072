package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// bench is what the worlds of one scenario share.
type bench struct {
	scenario *scenario
	client   *dynamodb.Client
	table    string
	sqs      *sqs.Client
	queues   *queues
	worlds   atomic.Int64
}

func newBench(t *testing.T, s *scenario, q *queues) *bench {
	t.Helper()
	client := awstest.DynamoDB(t)
	api := sqs.NewFromConfig(awstest.Config(t), func(o *sqs.Options) { o.BaseEndpoint = aws.String(q.server.URL) })
	return &bench{scenario: s, client: client, table: awstest.Table(t, client), sqs: api, queues: q}
}

// world is a separate environment, with the process that looks after it: it prepares, and takes over from the one that died.
type world struct {
	*bench

	t           *testing.T
	environment runlane.Environment
	ledger      string
	rt          *core.Runtime
	storage     *dynamostore.Store
	ahead       atomic.Int64           // of its clock
	runs        []runlane.RunID        // that it triggered itself
	arguments   map[string]string      // for the child
	gone        map[runlane.RunID]bool // pruned
	faults      []string
}

func (w *world) fault(format string, arguments ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, arguments...))
}

// newWorld makes the world of one child. One shard of each index is enough for a few runs, and saves most of what a tick reads.
func (b *bench) newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		bench: b, t: t, environment: runlane.Environment(fmt.Sprintf("e%d", b.worlds.Add(1))), arguments: map[string]string{},
		gone: map[runlane.RunID]bool{},
	}
	w.ledger = filepath.Join(t.TempDir(), "ledger")
	_, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.table, Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: string(w.environment) + ":config"}, "sk": &types.AttributeValueMemberS{Value: "shards"},
		"wr": &types.AttributeValueMemberN{Value: "1"}, "rd": &types.AttributeValueMemberN{Value: "1"},
	}})
	w.must(err)
	logger := slog.New(slog.DiscardHandler)
	transport, err := sqstransport.New(b.sqs, w.urls(), &sqstransport.Options{Logger: logger})
	w.must(err)
	w.storage = dynamostore.New(b.client, b.table, &dynamostore.Options{Now: w.now, RequestTimeout: awstest.RequestTimeout})
	l, err := lane.New(w.storage, transport, &lane.Options{Environment: w.environment})
	w.must(err)
	options := b.scenario.options(&program{ledger: w.ledger, mark: func(string) {}, cancel: func(ctx context.Context, id runlane.RunID) error {
		_, err := w.rt.Runs().Cancel(ctx, id, nil)
		return err
	}})
	options.Logger, options.World = logger, &core.World{Now: w.now}
	w.rt, err = core.Open(t.Context(), l, options)
	w.must(err)
	return w
}

func (w *world) close() { w.must(w.rt.Close(context.Background())) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// names are the SQS queues of this world.
func (w *world) names() []string {
	return []string{w.table + "-" + string(w.environment) + "-default", w.table + "-" + string(w.environment) + "-line"}
}

func (w *world) urls() map[runlane.QueueName]string {
	names := w.names()
	return map[runlane.QueueName]string{runlane.DefaultQueue.Name: w.queues.url(names[0]), narrow.Name: w.queues.url(names[1])}
}

// advance moves the clock of everything in this world.
func (w *world) advance(d time.Duration) {
	w.ahead.Add(int64(d))
	for _, name := range w.names() {
		w.queues.advance(name, d)
	}
}

// toTenPast moves the clock to ten minutes past the next hour. Schedules fire at whole hours: of two worlds that began shortly
// before one by the wall clock, the later could see another time of its schedule while it settles. It moves by ten minutes at
// least, so that every child ticks in the same way (tickOnce).
func (w *world) toTenPast() {
	const past = 10 * time.Minute
	now := w.now()
	w.advance(past + time.Hour - now.Sub(now.Truncate(time.Hour)))
}

func (w *world) refusing(code string) {
	for _, name := range w.names() {
		w.queues.with(name, func(of *queue, _ time.Time) { of.refuses = code })
	}
}

func (w *world) reveal() {
	for _, name := range w.names() {
		w.queues.reveal(name)
	}
}

// hideAllBut makes the messages of other runs invisible for a while.
func (w *world) hideAllBut(id runlane.RunID) {
	for _, name := range w.names() {
		w.queues.with(name, func(of *queue, now time.Time) {
			for _, m := range of.held {
				if !strings.Contains(m.body, string(id)) {
					m.visible = now.Add(visibility)
				}
			}
		})
	}
}

// lose is what SQS promises not to do.
func (w *world) lose() {
	for _, name := range w.names() {
		w.queues.with(name, func(of *queue, _ time.Time) { of.held = nil })
	}
}

func (w *world) trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	w.t.Helper()
	result, err := w.rt.Trigger(w.t.Context(), call, options)
	w.must(err)
	w.runs = append(w.runs, result.Run.ID)
	return result.Run.ID
}

// deliver is a function that takes messages until none is visible.
func (w *world) deliver() {
	w.t.Helper()
	for range 20 {
		if w.deliverOnce() {
			return
		}
	}
	w.fault("messages came again and again")
}

// deliverOnce is an invocation for each queue that has messages. idle says that none has.
func (w *world) deliverOnce() (idle bool) {
	w.t.Helper()
	idle = true
	for _, name := range w.names() {
		var batch []message
		w.queues.with(name, func(of *queue, now time.Time) { batch = w.queues.receive(of, now, 10) })
		if len(batch) == 0 {
			continue
		}
		idle = false
		event := events.SQSEvent{}
		receipts := map[string]string{}
		for _, m := range batch {
			receipts[m.id] = m.receipt
			event.Records = append(event.Records, events.SQSMessage{
				MessageId: m.id, ReceiptHandle: m.receipt, Body: m.body, EventSourceARN: sourceOf(w.queues.url(name)),
				Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
			})
		}
		response, err := functions.Bridge(w.rt)(w.t.Context(), event)
		w.must(err)
		for _, failure := range response.BatchItemFailures {
			delete(receipts, failure.ItemIdentifier)
		}
		w.queues.with(name, func(of *queue, _ time.Time) {
			for _, receipt := range receipts {
				of.delete(receipt)
			}
		})
	}
	return idle
}

func (w *world) tick() {
	w.t.Helper()
	_, err := w.rt.Tick(w.t.Context(), nil)
	w.must(err)
}

// between is more than everything that a dead process leaves ends after: leases, reservations, claims, visibility.
const between = 130 * time.Second

// recover is what goes on without the process that died: two ticks pass, and messages are delivered.
func (w *world) recover() {
	w.t.Helper()
	w.refusing("")
	for range 2 {
		w.advance(between)
		w.deliver()
		w.tick()
		w.deliver()
	}
}

// run starts a child. The target is where it is to die; nil lets it live. dead is false when it lived although it was to die.
func (w *world) run(target *point, protection string) (lines []line, dead bool) {
	w.t.Helper()
	text, err := json.Marshal(job{
		Scenario: w.scenario.name, Target: target, Broken: protection, Environment: w.environment, Table: w.table, Queues: w.urls(),
		Ledger: w.ledger, Ahead: time.Duration(w.ahead.Load()), Arguments: w.arguments,
	})
	w.must(err)
	key, err := w.client.Options().Credentials.Retrieve(w.t.Context())
	w.must(err)
	self, err := os.Executable()
	w.must(err)
	ctx, cancel := context.WithTimeout(w.t.Context(), childTime)
	defer cancel()
	var out, faults bytes.Buffer
	command := exec.CommandContext(ctx, self) // this test's own binary
	command.Stdout, command.Stderr = &out, &faults
	command.Env = []string{
		jobVariable + "=" + string(text), "GODEBUG=tracebackancestors=20", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=" + key.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_DYNAMODB=" + aws.ToString(w.client.Options().BaseEndpoint),
		"AWS_ENDPOINT_URL_SQS=" + w.queues.server.URL, "AWS_EC2_METADATA_DISABLED=true", "GOMAXPROCS=2",
	}
	err = command.Run()
	lines = readLines(out.String())
	ended := len(lines) > 0 && lines[len(lines)-1].Ended
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	said := slices.ContainsFunc(lines, func(l line) bool { return l.Dies != nil })
	dead = status.Signaled() && status.Signal() == syscall.SIGKILL && said
	if !dead && (err != nil || !ended) || dead && target == nil {
		w.t.Fatalf("the child was to die %v, and ended with %v:\n%s\n%s", target, err, tail(out.String()), tail(faults.String()))
	}
	return lines, dead
}

// tail is the end of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
