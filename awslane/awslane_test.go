package awslane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/lane"
)

const url = "https://sqs.eu-west-1.amazonaws.com/123456789012/"

// environment isolates the test from the machine's AWS configuration; pairs override what would work.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	values := map[string]string{
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "",
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_SQS": "",
		"AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_RETRY_MODE": "", "AWS_MAX_ATTEMPTS": "", "AWS_NEW_RETRIES_2026": "", "AWS_CA_BUNDLE": "",
		"RUNLANE_ENV": "", "RUNLANE_TABLE": "runs", "RUNLANE_QUEUES": "mail=" + url + "mail",
	}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	for name, value := range values {
		t.Setenv(name, value)
	}
}

func TestFromEnv_EverythingSet_IsADurableLaneAndNoRequest(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	environment(t, "RUNLANE_ENV", "prod", "AWS_ENDPOINT_URL", server.URL, "RUNLANE_QUEUES", "mail="+url+"mail, orders="+url+"orders.fifo ,")
	l, err := awslane.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "aws" || l.Environment != "prod" || !l.ProductionDurable || !l.OperatorReads {
		t.Errorf("lane is %+v", l)
	}
	if diff := cmp.Diff([]runlane.QueueName{"mail", "orders"}, l.Transport.Queues()); diff != "" {
		t.Error(diff)
	}
	if _, ok := lane.As[lane.Receiver](l.Transport); !ok {
		t.Error("the lane's transport cannot receive")
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
	if err := l.Start(t.Context(), lane.StartOptions{}); err == nil || requests.Load() == 0 {
		t.Errorf("Start made %d requests to the configured endpoint and returned %v", requests.Load(), err)
	}
}

func TestFromEnv_WhatIsMissingOrWrong_IsNamedWithItsFix(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []string
		says  []string
	}{
		"no table":                 {[]string{"RUNLANE_TABLE", ""}, []string{"RUNLANE_TABLE is not set", "DynamoDB table"}},
		"no queues":                {[]string{"RUNLANE_QUEUES", " "}, []string{"RUNLANE_QUEUES is not set", "name=url"}},
		"only a comma":             {[]string{"RUNLANE_QUEUES", ","}, []string{"RUNLANE_QUEUES", "name=url"}},
		"queue without a URL":      {[]string{"RUNLANE_QUEUES", "mail="}, []string{"RUNLANE_QUEUES", `"mail"`}},
		"queue that is no URL":     {[]string{"RUNLANE_QUEUES", "mail=mail"}, []string{"RUNLANE_QUEUES", `"mail"`, "https://"}},
		"bad environment":          {[]string{"RUNLANE_ENV", "a:b"}, []string{"RUNLANE_ENV"}},
		"no region":                {[]string{"AWS_REGION", ""}, []string{"AWS_REGION"}},
		"bundle that is not there": {[]string{"AWS_CA_BUNDLE", "no-such.pem"}, []string{"AWS_CA_BUNDLE", "PEM"}},
		"bundle of something else": {[]string{"AWS_CA_BUNDLE", "awslane.go"}, []string{"AWS_CA_BUNDLE", "PEM"}},
		"bad AWS variable":         {[]string{"AWS_MAX_ATTEMPTS", "many"}, []string{"AWS_"}},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tc.pairs...)
			_, err := awslane.FromEnv(t.Context())
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" {
				t.Fatalf("error is %v", err)
			}
			for _, want := range tc.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestParseQueues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want map[runlane.QueueName]string // nil: configuration_invalid
	}{
		"one":                  {"a=u", map[runlane.QueueName]string{"a": "u"}},
		"spaces and lines":     {" a = u ,\n b=v , ", map[runlane.QueueName]string{"a": "u", "b": "v"}},
		"URL with a query":     {"a=http://h/q?x=1", map[runlane.QueueName]string{"a": "http://h/q?x=1"}},
		"empty":                {"", nil},
		"gap":                  {"a=u,,b=v", nil},
		"no equals sign":       {"a=u,b", nil},
		"no name":              {"=u", nil},
		"bad name":             {"a:b=u", nil},
		"no URL":               {"a=", nil},
		"twice":                {"a=u,a=v", nil},
		"two commas at an end": {"a=u,,", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := awslane.ParseQueues(tc.text)
			if tc.want == nil {
				if !errors.Is(err, runlane.ErrConfigurationInvalid) || !strings.Contains(err.Error(), "RUNLANE_QUEUES") {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseQueues_Error_DoesNotRepeatTheValue(t *testing.T) {
	t.Parallel()
	_, err := awslane.ParseQueues("a=u,https//user:secret@host")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error is %v", err)
	}
}

// failing answers 500 and counts.
func failing(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	return server, &requests
}

func TestTune_FaultOfTheService_IsTriedFourTimes(t *testing.T) {
	environment(t)
	server, requests := failing(t)
	cfg := awslane.Tune(aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}})
	_, err := sqs.NewFromConfig(cfg).ListQueues(context.Background(), &sqs.ListQueuesInput{})
	if err == nil || requests.Load() != 4 {
		t.Errorf("%d requests, error %v", requests.Load(), err)
	}
}

func TestTune_Throttle_WaitsLonger(t *testing.T) {
	environment(t)
	retryer := awslane.Tune(aws.Config{}).Retryer()
	longest := func(err error, attempt int) (most time.Duration) {
		for range 200 {
			d, fault := retryer.RetryDelay(attempt, err)
			if fault != nil || d <= 0 {
				t.Fatalf("delay %s, error %v", d, fault)
			}
			most = max(most, d)
		}
		return most
	}
	outage, throttle := &smithy.GenericAPIError{Code: "InternalError"}, &smithy.GenericAPIError{Code: "ThrottlingException"}
	for _, tc := range []struct {
		err       error
		attempt   int
		low, high time.Duration
	}{
		{outage, 1, 15 * time.Millisecond, 25 * time.Millisecond},
		{outage, 3, 60 * time.Millisecond, 100 * time.Millisecond},
		{throttle, 1, 600 * time.Millisecond, time.Second},
		{throttle, 60, 3 * time.Second, 5 * time.Second},
	} {
		if d := longest(tc.err, tc.attempt); d < tc.low || d > tc.high {
			t.Errorf("longest wait after %v at attempt %d is %s", tc.err, tc.attempt, d)
		}
	}
}

func TestTune_CallersChoices_Stay(t *testing.T) {
	environment(t)
	client := &http.Client{}
	own := func() aws.Retryer { return retry.AddWithMaxAttempts(retry.NewStandard(), 9) }
	got := awslane.Tune(aws.Config{HTTPClient: client, Retryer: own})
	if got.HTTPClient != client || got.Retryer().MaxAttempts() != 9 {
		t.Error("the client or the retryer was replaced")
	}
	if awslane.Tune(aws.Config{RetryMode: aws.RetryModeAdaptive}).Retryer != nil {
		t.Error("adaptive retries were replaced")
	}
	if n := awslane.Tune(aws.Config{RetryMaxAttempts: 2}).Retryer().MaxAttempts(); n != 2 {
		t.Errorf("%d attempts", n)
	}
	t.Setenv("AWS_NEW_RETRIES_2026", "true")
	if awslane.Tune(aws.Config{}).Retryer != nil {
		t.Error("the SDK's own new retries were replaced")
	}
}

func TestNew_CustomEndpoint_ErrorsWithoutChecksumLogNoWarning(t *testing.T) {
	environment(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amz-Crc32", "1") // wrong on purpose: a checksum that is validated is noticed
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`)
	}))
	t.Cleanup(server.Close)
	var lines atomic.Int64
	l, err := awslane.New(aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{},
		Logger: logging.LoggerFunc(func(logging.Classification, string, ...any) { lines.Add(1) }),
	}, awslane.Options{Table: "runs", Queues: map[runlane.QueueName]string{"mail": url + "mail"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Storage.Start(t.Context()); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error is %v", err)
	}
	if n := lines.Load(); n != 0 {
		t.Errorf("the SDK logged %d lines", n)
	}
}

func TestNew_WithoutTable_IsConfigurationInvalid(t *testing.T) {
	t.Parallel()
	_, err := awslane.New(aws.Config{Region: "eu-west-1"}, awslane.Options{Queues: map[runlane.QueueName]string{"mail": url + "mail"}})
	if !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error is %v", err)
	}
}

func ExampleParseQueues() {
	queues, err := awslane.ParseQueues("emails=https://sqs.eu-west-1.amazonaws.com/123456789012/emails")
	fmt.Println(queues["emails"], err)
	// Output: https://sqs.eu-west-1.amazonaws.com/123456789012/emails <nil>
}

func TestScheme_IsFromEnvWithTheTableOfTheName(t *testing.T) {
	environment(t, "RUNLANE_TABLE", "")
	for name, valid := range map[string]bool{"aws:": false, "aws:runs": true} {
		l, err := lane.Open(t.Context(), name, awslane.Scheme)
		if valid != (err == nil) || !valid && runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}
