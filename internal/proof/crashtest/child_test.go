package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
)

const (
	// jobVariable makes this test binary a child.
	jobVariable = "RUNLANE_CRASH_JOB"
	// childTime bounds a child. deliveryTime is what its function has for a batch: a run of it is leased for so long, and 5 s.
	childTime    = 90 * time.Second
	deliveryTime = 40 * time.Second
	tickTime     = time.Minute
)

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		os.Exit(runChild(text))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// job is what a child is to do.
type job struct {
	Scenario    string                       `json:"scenario"`
	Target      *point                       `json:"target,omitempty"`
	Broken      string                       `json:"broken,omitempty"` // the protection that is off
	Environment runlane.Environment          `json:"environment"`
	Table       string                       `json:"table"`
	Queues      map[runlane.QueueName]string `json:"queues"`
	Ledger      string                       `json:"ledger"`
	Ahead       time.Duration                `json:"ahead"` // of its clock
	Arguments   map[string]string            `json:"arguments,omitempty"`
}

// child is the process that dies.
type child struct {
	job

	trap *trap
	sqs  *sqs.Client
	rt   *core.Runtime
}

func runChild(text string) int {
	c := &child{trap: newTrap()}
	ctx, cancel := context.WithTimeout(context.Background(), childTime)
	defer cancel()
	if err := c.run(ctx, text); err != nil {
		c.trap.say(line{Error: err.Error()})
		return 1
	}
	c.trap.say(line{Ended: true})
	return 0
}

func (c *child) run(ctx context.Context, text string) error {
	if err := json.Unmarshal([]byte(text), &c.job); err != nil {
		return err
	}
	s, ok := scenarioOf(c.Scenario)
	if !ok {
		return fmt.Errorf("there is no scenario %q", c.Scenario)
	}
	c.trap.target, c.trap.breaks = c.Target, broken[c.Broken]
	if err := c.open(ctx, &s); err != nil {
		return err
	}
	if err := s.act(ctx, c); err != nil {
		return err
	}
	return c.rt.Close(ctx)
}

// open makes what a program makes: the lane that awslane composes, from a configuration with one more middleware.
func (c *child) open(ctx context.Context, s *scenario) error {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithAPIOptions([]func(*middleware.Stack) error{c.trap.install}),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), "test", "")))
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	l, err := awslane.New(cfg, awslane.Options{Environment: c.Environment, Table: c.Table, Queues: c.Queues, Logger: logger})
	if err != nil {
		return err
	}
	c.sqs = sqs.NewFromConfig(cfg)
	options := s.options(&program{dies: true, ledger: c.Ledger, mark: c.trap.mark, cancel: func(ctx context.Context, id runlane.RunID) error {
		_, err := c.rt.Runs().Cancel(ctx, id, nil)
		return err
	}})
	options.Logger = logger
	options.World = &core.World{Now: func() time.Time { return time.Now().Add(c.Ahead) }}
	if s.without {
		options.Handlers = options.Handlers[:0]
		options.Queues = []runlane.Queue{play.Definition().Queue, narrow}
	}
	c.rt, err = core.Open(ctx, l, options)
	return err
}

// promise says that a call has returned: from now on the run must not be lost.
func (c *child) promise(id runlane.RunID) { c.trap.say(line{Promised: string(id)}) }

// trigger triggers a run and promises it.
func (c *child) trigger(ctx context.Context, call runlane.Call, options *runlane.TriggerOptions) error {
	result, err := c.rt.Trigger(ctx, call, options)
	if err == nil {
		c.promise(result.Run.ID)
	}
	return err
}

// invoke is what Lambda does with a queue's messages: the function gets a batch and its deadline, and what it does not hand back is
// deleted.
func (c *child) invoke(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		if err := c.invokeFor(ctx, c.Queues[name]); err != nil {
			return err
		}
	}
	return nil
}

func (c *child) invokeFor(ctx context.Context, url string) error {
	out, err := c.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil || len(out.Messages) == 0 {
		return err
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
	limited, cancel := c.limit(ctx, deliveryTime)
	defer cancel()
	response, err := functions.Bridge(c.rt)(limited, event)
	if err != nil {
		return err
	}
	c.trap.mark("the bridge's answer")
	for _, failure := range response.BatchItemFailures {
		delete(receipts, failure.ItemIdentifier)
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for id, receipt := range receipts {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(id), ReceiptHandle: aws.String(receipt)})
	}
	if len(entries) > 0 {
		_, err = c.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
	}
	return err
}

// limit is the deadline of an invocation, by the child's clock.
func (c *child) limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithoutCancel(ctx), time.Now().Add(c.Ahead+d))
}

// sourceOf is the ARN of a queue's URL.
func sourceOf(url string) string {
	_, name, _ := strings.Cut(url, "000000000000/")
	return "arn:aws:sqs:us-east-1:000000000000:" + name
}

// work is a long-lived worker, until a condition holds.
func (c *child) work(ctx context.Context, options *core.WorkOptions, over func(context.Context) (bool, error)) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.rt.Work(working, options) }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, errors.New("the worker stopped by itself"))
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if done, err := over(ctx); err != nil {
			return err
		} else if done {
			stop()
			return <-ended
		}
	}
}
