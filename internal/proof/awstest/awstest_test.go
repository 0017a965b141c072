package awstest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go/infra"
)

// doomed is a test that may fail.
type doomed struct {
	testing.TB
	said string
}

func (d *doomed) Fatal(args ...any) {
	d.said, _ = args[0].(string)
	runtime.Goexit()
}

func (d *doomed) Fatalf(format string, _ ...any) { d.Fatal(format) }

// refusalOf is what a function says that ends a test; "" where it ends none.
func refusalOf(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	d := &doomed{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(d)
	}()
	<-ended
	return d.said
}

// A client needs the endpoint for its service and no other, and never goes to AWS itself.
func TestClients_NeedTheEndpointOfTheirOwnService(t *testing.T) {
	if testing.Short() {
		t.Skip("-short makes no client")
	}
	for _, c := range []struct {
		set             string
		dynamodb, queue bool
	}{
		{"AWS_ENDPOINT_URL", true, true},
		{"AWS_ENDPOINT_URL_DYNAMODB", true, false},
		{"AWS_ENDPOINT_URL_SQS", false, true},
		{"AWS_ENDPOINT_URL_LAMBDA", false, false},
	} {
		for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.set, "http://127.0.0.1:1")
		if said := refusalOf(t, func(t testing.TB) { t.Helper(); DynamoDB(t) }); (said == "") != c.dynamodb {
			t.Errorf("%s: a client of DynamoDB: %q", c.set, said)
		}
		if said := refusalOf(t, func(t testing.TB) { t.Helper(); SQS(t) }); (said == "") != c.queue {
			t.Errorf("%s: a client of SQS: %q", c.set, said)
		}
	}
}

// An emulator that keeps nothing of a queue's definition is one that the suite of transports can be tried on.
func TestLenientQueue_TakesAnEmulatorThatKeepsNoAttributes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		answer := map[string]any{}
		switch action {
		case "CreateQueue":
			answer["QueueUrl"] = "http://" + r.Host + "/queue/a"
		case "GetQueueAttributes":
			answer["Attributes"] = map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:000000000000:a"}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(server.URL), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	if _, err := infra.CreateQueue(t.Context(), client, "a", nil); !errors.Is(err, infra.ErrQueueDiffers) {
		t.Fatalf("error is %v: the emulator is not lenient", err)
	}
	if url := LenientQueue(t, client, false); url != server.URL+"/queue/a" {
		t.Errorf("url is %q", url)
	}
}
