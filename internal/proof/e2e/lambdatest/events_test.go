package lambdatest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bridgetypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/eventbus"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// A bus on local AWS gets the end of every run, while the function that sends them dies before a request, dies after one
// whose answer is lost, and gets answers that refuse some entries for a while and others for good.
func TestEvents_EachEndReachesTheBus_WhileItsSenderDies(t *testing.T) {
	t.Parallel()
	const runs = 60
	i := install(t, installOptions{streamed: true})
	bus, received := i.bus(t)
	retries := awstest.Queue(t, i.sqs, false)
	var sender *lambdatest.Function
	var requests atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if n%5 == 1 {
			sender.Signal(syscall.SIGKILL)
			return
		}
		status, body := forward(t, r)
		switch n % 5 {
		case 2:
			sender.Signal(syscall.SIGKILL)
			return
		case 3:
			body = refuse(t, body, "ThrottlingException")
		case 4:
			body = refuse(t, body, "NotAuthorizedForSourceException")
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(front.Close)
	sender = i.deploy("events", eventbus.Role, lambdatest.Options{}, map[string]string{
		"AWS_ENDPOINT_URL_EVENTBRIDGE": front.URL, eventbus.BusVariable: bus, eventbus.RetriesVariable: retries.URL,
	})
	t.Cleanup(i.mappings.Stop)
	i.mappings.Stream(awstest.LocalStackDynamoDB(t), awstest.Streams(t), i.table,
		&eventsource.StreamOptions{Filter: ended, BatchSize: 7, MaxRetries: 1000, Logger: quiet},
		lambdatest.Handler[events.DynamoDBEvent, events.DynamoDBEventResponse](sender))
	i.mappings.Queue(i.sqs, retries.URL, &eventsource.QueueOptions{Concurrency: 1, Logger: quiet},
		lambdatest.Handler[events.SQSEvent, events.SQSEventResponse](sender))
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, nil)
	i.mapQueue(bridge, eventsource.QueueOptions{})

	want := map[string]string{}
	for n := range runs {
		id := i.act(lambdatest.Play, lambdatest.Act{Name: fmt.Sprint(n)}, nil)
		want[string(id)] = "Run Succeeded"
	}
	cancelled := i.act(lambdatest.Play, lambdatest.Act{Name: "never"}, &runlane.TriggerOptions{Delay: time.Hour})
	if _, err := i.Runs().Cancel(t.Context(), cancelled, nil); err != nil {
		t.Fatal(err)
	}
	want[string(cancelled)] = "Run Cancelled"
	got := map[string]string{}
	until(t, "every end", func() bool {
		received(got)
		return len(got) >= len(want)
	})
	equal(t, "events", got, want)
	if requests.Load() < runs/7 {
		t.Errorf("%d requests: the faults were not met", requests.Load())
	}
}

// ended is the template's filter.
func ended(r *types.Record) bool {
	if r.EventName != types.OperationTypeModify {
		return false
	}
	status, _ := r.Dynamodb.NewImage["st"].(*types.AttributeValueMemberS)
	sk, _ := r.Dynamodb.Keys["sk"].(*types.AttributeValueMemberS)
	return status != nil && sk != nil && sk.Value == "run" && runlane.Status(status.Value).Terminal()
}

// forward passes a request on to local AWS.
func forward(t *testing.T, r *http.Request) (status int, body []byte) {
	t.Helper()
	to, err := http.NewRequestWithContext(t.Context(), r.Method, os.Getenv("AWS_ENDPOINT_URL"), r.Body)
	if err != nil {
		t.Error(err)
		return http.StatusInternalServerError, nil
	}
	to.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(to)
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	defer answer.Body.Close()
	body, _ = io.ReadAll(answer.Body)
	return answer.StatusCode, body
}

// refuse makes an answer one that refuses its first entry. (The bus has taken it: the event comes twice.)
func refuse(t *testing.T, body []byte, code string) []byte {
	t.Helper()
	var answer struct {
		FailedEntryCount int
		Entries          []map[string]string
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Entries) == 0 {
		return body
	}
	answer.FailedEntryCount, answer.Entries[0] = 1, map[string]string{"ErrorCode": code, "ErrorMessage": "scripted"}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Error(err)
	}
	return bytes.TrimSpace(text)
}

// bus makes a bus with a rule to a queue, as docs/events.md has it. received adds the detail types of what came, by run.
func (i *installation) bus(t *testing.T) (name string, received func(map[string]string)) {
	t.Helper()
	client := eventbridge.NewFromConfig(awstest.Config(t))
	name = awstest.Name(t)
	target := awstest.Queue(t, i.sqs, false)
	if _, err := client.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("ends"), EventBusName: &name, EventPattern: aws.String(`{"source":["runlane"],"detail":{"taskId":["play"]}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: aws.String("ends"), EventBusName: &name, Targets: []bridgetypes.Target{{Id: aws.String("queue"), Arn: &target.ARN}},
	}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	return name, func(got map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		out, err := i.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &target.URL, MaxNumberOfMessages: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			var event struct {
				DetailType string `json:"detail-type"`
				Detail     struct{ Kind, RunID string }
			}
			if err := json.NewDecoder(strings.NewReader(*m.Body)).Decode(&event); err != nil || event.Detail.Kind != "run" {
				t.Errorf("%s: %v", *m.Body, err)
			}
			got[event.Detail.RunID] = event.DetailType
		}
	}
}
