package lambdatest_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// opening are the log lines that say why a runtime cannot open.
func opening(t *testing.T, log string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["level"] == "ERROR" {
			lines = append(lines, fields)
		}
	}
	return lines
}

// otherTable is a table whose keys are not the layout's.
func (i *installation) otherTable() string {
	i.t.Helper()
	client := dynamodb.NewFromConfig(awstest.Config(i.t), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.DisableValidateResponseChecksum = aws.String(i.db), true
	})
	name := awstest.Name(i.t)
	_, err := client.CreateTable(i.t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			i.t.Error(err)
		}
	})
	return name
}

// Whatever is wrong with an installation is one line of the log, with its code, its name and its fix. The process stays, every
// invocation fails, and what is in the queue remains there.
func TestStart_BadInstallation_IsOneLineAndEatsNothing(t *testing.T) {
	t.Parallel()
	const missing = "" // leaves the variable out
	for name, tc := range map[string]struct {
		fifo   bool
		change func(*installation) map[string]string
		says   []string // message and hint
	}{
		"no table": {false, func(*installation) map[string]string {
			return map[string]string{awslane.TableVariable: missing}
		}, []string{"RUNLANE_TABLE is not set", "DynamoDB table"}},
		"no queues": {false, func(*installation) map[string]string {
			return map[string]string{awslane.QueuesVariable: missing}
		}, []string{"RUNLANE_QUEUES is not set", "name=url"}},
		"no role": {false, func(*installation) map[string]string {
			return map[string]string{functions.RoleVariable: missing}
		}, []string{"RUNLANE_FUNCTION", "bridge, relay or tick"}},
		"no secret of the application": {false, func(*installation) map[string]string {
			return map[string]string{webhooks.SecretVariable: missing}
		}, []string{webhooks.SecretVariable + " is not set"}},
		"no region": {false, func(*installation) map[string]string {
			return map[string]string{"AWS_REGION": missing}
		}, []string{"region", "AWS_REGION"}},
		"a table that is not there": {false, func(*installation) map[string]string {
			return map[string]string{awslane.TableVariable: "nowhere"}
		}, []string{`"nowhere" does not exist`, "RUNLANE_TABLE"}},
		"a table of another layout": {false, func(i *installation) map[string]string {
			return map[string]string{awslane.TableVariable: i.otherTable()}
		}, []string{"does not have the layout", "pk", "index due is missing"}},
		"a queue of a task without a binding": {false, func(i *installation) map[string]string {
			return map[string]string{awslane.QueuesVariable: "other=" + i.queue.URL}
		}, []string{`queue "webhooks"`, "no binding"}},
		"a standard queue bound as FIFO": {false, func(i *installation) map[string]string {
			return map[string]string{awslane.QueuesVariable: "webhooks=" + i.queue.URL + ".fifo"}
		}, []string{`"webhooks"`, "RUNLANE_QUEUES"}},
		"a FIFO queue bound as standard": {true, func(i *installation) map[string]string {
			return map[string]string{awslane.QueuesVariable: "webhooks=" + strings.TrimSuffix(i.queue.URL, ".fifo")}
		}, []string{`"webhooks"`, "RUNLANE_QUEUES"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t, installOptions{name: "webhooks", fifo: tc.fifo, visibility: time.Second})
			changes := map[string]string{webhooks.EndpointsVariable: "shop=http://127.0.0.1:9", webhooks.SecretVariable: "secret"}
			for variable, value := range tc.change(i) {
				changes[variable] = value
			}
			result, err := i.Trigger(t.Context(), webhooks.Deliver.With(webhooks.Delivery{ID: "1", Endpoint: "shop", Payload: "{}"}), nil)
			if err != nil {
				t.Fatal(err)
			}
			bridge := i.deploy("bridge", functions.RoleBridge, lambdatest.Options{}, changes)
			var failed atomic.Int64
			stop := i.background(func(ctx context.Context) error {
				bridging := lambdatest.Handler[events.SQSEvent, events.SQSEventResponse](bridge)
				return eventsource.Queue(ctx, i.sqs, i.queue.URL, &eventsource.QueueOptions{Concurrency: 1, Logger: quiet}, func(
					ctx context.Context, e events.SQSEvent,
				) (events.SQSEventResponse, error) {
					response, err := bridging(ctx, e)
					if err == nil {
						t.Error("an invocation did not fail")
					}
					failed.Add(1)
					return response, err
				})
			})
			until(t, "the message came three times", func() bool { return failed.Load() >= 3 })
			stop()
			lines := opening(t, bridge.Log())
			if len(lines) != 1 || lines[0]["message"] != "the runtime cannot open" || lines[0]["code"] != "configuration_invalid" {
				t.Fatalf("%d log lines: %v", len(lines), lines)
			}
			text, _ := json.Marshal([]any{lines[0]["error"], lines[0]["hint"]})
			for _, want := range tc.says {
				quoted, _ := json.Marshal(want)
				if !strings.Contains(string(text), strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s does not say %s", text, want)
				}
			}
			if starts := len(bridge.Starts()); starts != 1 || len(bridge.Processes()) != 1 {
				t.Errorf("%d starts, %d processes", starts, len(bridge.Processes()))
			}
			if visible, inFlight := i.depth(); visible+inFlight != 1 {
				t.Errorf("%d messages are left", visible+inFlight)
			}
			if run, err := i.Runs().Get(t.Context(), result.Run.ID); err != nil || run.Status != runlane.StatusQueued {
				t.Errorf("run is %+v, %v", run, err)
			}
			i.sound()
		})
	}
}
