package awslane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/lane"
)

type eventReader interface {
	RefusedEvents(ctx context.Context) (again, givenUp int, err error)
}

// eventLane is a lane with event queues, and its reader of them, if it has one.
func eventLane(t *testing.T, endpoint string, queues ...string) (eventReader, error) {
	t.Helper()
	l, err := awslane.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, awslane.Options{
		Table: "runs", Queues: map[runlane.QueueName]string{"default": "https://sqs.example/1/work"}, EventQueues: queues,
	})
	if err != nil {
		return nil, err
	}
	reader, _ := lane.As[eventReader](l.Transport)
	return reader, nil
}

func TestRefusedEvents_AreCountedInBothQueues(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"Attributes":{"ApproximateNumberOfMessages":"2","ApproximateNumberOfMessagesNotVisible":"1"}}`)
	}))
	defer server.Close()
	reader, err := eventLane(t, server.URL, "https://sqs.example/1/retries", "https://sqs.example/1/dead")
	if err != nil || reader == nil {
		t.Fatal(reader, err)
	}
	if again, givenUp, err := reader.RefusedEvents(t.Context()); again != 3 || givenUp != 3 || err != nil {
		t.Errorf("%d %d %v", again, givenUp, err)
	}
	status = http.StatusForbidden
	if _, _, err := reader.RefusedEvents(t.Context()); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Error(err)
	}
	if reader, err := eventLane(t, server.URL); err != nil || reader != nil {
		t.Errorf("without event queues: %v %v", reader, err)
	}
	for _, queues := range [][]string{{"https://sqs.example/1/retries"}, {"https://sqs.example/1/retries", "dead"}} {
		if _, err := eventLane(t, server.URL, queues...); !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("%v: %v", queues, err)
		}
	}
}
