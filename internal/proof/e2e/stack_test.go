//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/data"
	"github.com/runlane/runlane-go/examples/webhooks/receiver"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

const (
	root   = "../../.."
	secret = "sesame"
	orders = runlane.QueueName("orders") // the FIFO queue
)

// TestTemplate_DeployedRunsWebhooks goes through the deployed stack as a user would, with one receiver for all deliveries.
//
// It then updates the stack, rolls it back, gives it a restored table, deletes it and deploys it again around the table that it left, by the
// commands of the runbook.
func TestTemplate_DeployedRunsWebhooks(t *testing.T) {
	d := deploy(t)
	table := d.stack.outputs["TableName"]
	deliveries := firstDeliveries(t, 40)
	var earlier *runlane.Run

	t.Run("wakeups that the trigger sends reach the bridge", func(t *testing.T) {
		earlier = d.wantDelivered(t, deliveries[:10], nil)[0]
	})
	t.Run("pending rows go through the stream and the relay", func(t *testing.T) {
		d.wantDelivered(t, deliveries[10:20], &runlane.TriggerOptions{Deferred: true})
	})
	// Delayed runs, those that only a tick finds, and a FIFO queue in its order are among what it checks.
	t.Run("make smoke-aws finds nothing wrong and leaves nothing behind", d.wantSound)
	t.Run("an unchanged deployment says that nothing changed", d.wantUnchanged)
	first, second := d.endpoint, receive(t)
	serving := d.versions(t)
	t.Run("a changed parameter reaches the running functions", func(t *testing.T) {
		d.update(t, map[string]string{"WebhookEndpoints": address(second)})
		d.wantSent(t, deliveries[30], second, first)
		for function, version := range d.versions(t) {
			if version == serving[function] {
				t.Errorf("%s has no new version", function)
			}
		}
	})
	t.Run("the runbook rolls it back", func(t *testing.T) {
		d.rollBack(t, serving, map[string]string{"WebhookEndpoints": address(first)}, func() { d.wantSent(t, deliveries[31], first, second) })
		d.wantSent(t, deliveries[36], first, second)
	})
	t.Run("a message that is no wakeup ends in the dead-letter queue", func(t *testing.T) {
		queue := d.queues[runlane.DefaultQueue.Name] // it carries those of webhooks too
		// One try instead of five: what a bridge hands back rests longer each time.
		d.setAttribute(t, queue, "RedrivePolicy", fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, d.arn(t, d.stack.outputs["WorkDeadLettersUrl"])))
		d.send(t, queue, "no wakeup at all")
		d.wantMessage(t, d.stack.outputs["WorkDeadLettersUrl"], "no wakeup at all")
	})
	t.Run("a stream batch that keeps failing reaches the relay's failure destination", func(t *testing.T) {
		d.breakRelay(t)
		run := d.trigger(t, deliveries[29], &runlane.TriggerOptions{Deferred: true})
		d.wantMessage(t, d.stack.outputs["RelayFailuresUrl"], "DDBStreamBatchInfo")
		if err := d.stack.tick(t.Context()); err != nil { // it finds what no relay published
			t.Error(err)
		}
		d.wantSucceeded(t, run)
		d.wantNoViolations(t)
	})
	t.Run("the runbook takes a restored table into the stack", func(t *testing.T) {
		restored := d.restore(t)
		d.follow(t, "Restore the table to a point in time", d.redeploy(t), map[string]string{"STACK": d.name, "RESTORED": restored})
		d.wantAdopted(t, restored, earlier, deliveries[32:34])
	})
	t.Run("the runbook deploys a deleted stack again around the table that it left", func(t *testing.T) {
		if err := d.stack.delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := func(changes map[string]string) { // what was packaged went with the stack
			maps.Copy(d.parameters, changes)
			d.deploy(t)
		}
		d.follow(t, "Stack deleted, table kept", again, map[string]string{
			"STACK": d.name, "TABLE": table, "SECRET": secret, "REVISION": "again", "PARAMETERS": "",
		})
		d.wantAdopted(t, table, earlier, deliveries[34:36])
	})
}

// deployed is the stack with what a program that triggers runs has of it.
type deployed struct {
	*endpoint // of the first deployment

	log        io.Writer // of the whole test
	name       string
	parameters map[string]string
	stack      *stack
	rt         *core.Runtime
	sqs        *sqs.Client
	queues     map[runlane.QueueName]string
}

// endpoint is a receiver that listens.
type endpoint struct {
	*receiver.Receiver

	url string
}

// receive listens until the test ends.
func receive(t *testing.T) *endpoint {
	t.Helper()
	received, err := receiver.Open(receiver.Options{Ledger: filepath.Join(t.TempDir(), "ledger.ndjson"), Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: received, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := received.Close(); err != nil {
			t.Error(err)
		}
	})
	return &endpoint{received, "http://" + listener.Addr().String()}
}

func deploy(t *testing.T) *deployed {
	t.Helper()
	d := &deployed{endpoint: receive(t), log: t.Output()}
	for name, value := range omitted {
		t.Logf("left out: %s=%s", name, value)
	}
	d.name = fmt.Sprintf("runlane-e2e-%x", time.Now().UnixNano())
	d.parameters = map[string]string{
		"BridgeTimeout": "30", "FifoQueue": string(orders), "WebhookSecret": secret, "WebhookEndpoints": address(d.endpoint),
	}
	d.deploy(t)
	t.Cleanup(func() {
		if err := d.stack.delete(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.sqs = sqs.NewFromConfig(cfg)
	d.open(t)
	return d
}

// open opens what the stack's outputs name, as a program that triggers runs.
func (d *deployed) open(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	d.queues, err = awslane.ParseQueues(d.stack.outputs["Queues"])
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := awslane.New(cfg, awslane.Options{
		Environment: runlane.Environment(d.stack.outputs["EnvironmentName"]), Table: d.stack.outputs["TableName"], Queues: d.queues,
	})
	if err != nil {
		t.Fatal(err)
	}
	d.rt, err = core.Open(ctx, l, nil) // no handlers: whatever is executed, the deployed bridge executes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func firstDeliveries(t *testing.T, n int) []webhooks.Delivery {
	t.Helper()
	file, err := data.GitHubWebhooks()
	if err != nil {
		t.Fatal(err)
	}
	var deliveries []webhooks.Delivery
	for line := range webhooks.ReadDeliveries(file) {
		if line.Err != nil {
			t.Fatal(line.Err)
		}
		if deliveries = append(deliveries, line.Delivery); len(deliveries) == n {
			break
		}
	}
	return deliveries
}

func (d *deployed) trigger(t *testing.T, delivery webhooks.Delivery, options *runlane.TriggerOptions) *runlane.Run {
	t.Helper()
	d.endpoint.Expect(delivery.ID, []byte(delivery.Payload))
	result, err := d.rt.Trigger(t.Context(), webhooks.Deliver.With(delivery), options)
	if err != nil {
		t.Fatal(err)
	}
	return result.Run
}

// wantDelivered triggers deliveries, waits until their runs have succeeded at the first attempt, and returns them.
func (d *deployed) wantDelivered(t *testing.T, deliveries []webhooks.Delivery, options *runlane.TriggerOptions) []*runlane.Run {
	t.Helper()
	var runs []*runlane.Run
	for _, delivery := range deliveries {
		runs = append(runs, d.trigger(t, delivery, options))
	}
	for i, run := range runs {
		runs[i] = d.wantSucceeded(t, run)
		if runs[i].Counters.Attempts != 1 || !d.endpoint.Accepted(deliveries[i].ID) {
			t.Errorf("run %s took %d attempts; the receiver has it: %t", run.ID, runs[i].Counters.Attempts, d.endpoint.Accepted(deliveries[i].ID))
		}
	}
	if report := d.endpoint.Report(); report.Mismatched+report.BadSignatures > 0 {
		t.Errorf("the receiver saw something that it cannot match: %+v", report)
	}
	return runs
}

// wantSucceeded waits for the end of a run.
func (d *deployed) wantSucceeded(t *testing.T, run *runlane.Run) (ended *runlane.Run) {
	t.Helper()
	d.eventually(t, func() (problem string) {
		var err error
		if ended, err = d.rt.Runs().Get(t.Context(), run.ID); err != nil {
			return err.Error()
		}
		if ended.Status != runlane.StatusSucceeded {
			return fmt.Sprintf("run %s is %s: %+v", ended.ID, ended.Status, ended.Failure)
		}
		return ""
	})
	return ended
}

// breakRelay points the relay's alias at a version without configuration, whose every invocation fails.
func (d *deployed) breakRelay(t *testing.T) {
	t.Helper()
	call := func(method, path, body string) []byte {
		t.Helper()
		answer, err := d.stack.lambda(t.Context(), method, "RelayFunction", path, body)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	call(http.MethodPut, "configuration", `{"Environment":{"Variables":{}}}`)
	var published struct{ Version string }
	if err := json.Unmarshal(call(http.MethodPost, "versions", "{}"), &published); err != nil {
		t.Fatal(err)
	}
	call(http.MethodPut, "aliases/live", fmt.Sprintf(`{"FunctionVersion":%q}`, published.Version))
}

func (d *deployed) eventually(t *testing.T, problem func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		found := problem()
		if found == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(found)
		}
	}
}

func (d *deployed) wantNoViolations(t *testing.T) {
	t.Helper()
	found, err := crash.Violations(t.Context(), d.rt.Lane().Storage, d.rt.Environment())
	if err != nil || len(found) > 0 {
		t.Errorf("violations: %+v, %v", found, err)
	}
}

func (d *deployed) arn(t *testing.T, url string) string {
	t.Helper()
	out, err := d.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["QueueArn"]
}

func (d *deployed) setAttribute(t *testing.T, url, name, value string) {
	t.Helper()
	_, err := d.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{name: value}})
	if err != nil {
		t.Fatal(err)
	}
}

func (d *deployed) send(t *testing.T, url, body string) {
	t.Helper()
	if _, err := d.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
		t.Fatal(err)
	}
}

// wantMessage waits for a message with the text in it.
func (d *deployed) wantMessage(t *testing.T, url, text string) {
	t.Helper()
	d.eventually(t, func() string {
		out, err := d.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5, MaxNumberOfMessages: 10})
		if err != nil {
			return err.Error()
		}
		for _, message := range out.Messages {
			if strings.Contains(aws.ToString(message.Body), text) {
				return ""
			}
		}
		return fmt.Sprintf("no message with %q arrives in %s", text, url)
	})
}
