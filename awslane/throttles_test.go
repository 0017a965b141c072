package awslane_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/lane"
)

// answering is an endpoint that refuses every request with an error of DynamoDB, as often as given, and then fails otherwise.
func answering(t *testing.T, body string, times int64) string {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		if requests.Add(1) > times {
			body = `{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException"}`
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestThrottled_CountsEveryAttemptThatWasThrottled(t *testing.T) {
	const prefix = `{"__type":"com.amazonaws.dynamodb.v20120810#`
	for name, tc := range map[string]struct {
		body string
		want int64
	}{
		"throttled":       {prefix + `ProvisionedThroughputExceededException"}`, 2},
		"request limit":   {prefix + `RequestLimitExceeded"}`, 2},
		"another refusal": {prefix + `AccessDeniedException"}`, 0},
		"in progress":     {prefix + `TransactionInProgressException"}`, 0},
		"a member throttled": {
			prefix + `TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"ThrottlingError"}]}`, 2,
		},
		"a member's condition": {
			prefix + `TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed"}]}`, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, "AWS_ENDPOINT_URL", answering(t, tc.body, 2))
			var throttles atomic.Int64
			l, err := awslane.FromEnv(host.With(t.Context(), host.Host{Throttled: func() { throttles.Add(1) }}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // what the SDK does not repeat, the caller does
				if _, err := l.Storage.GetRun(t.Context(), lane.RunKey{Environment: "prod", RunID: "run_1"}); err == nil ||
					errors.Is(err, runlane.ErrRunNotFound) {
					t.Fatalf("error is %v", err)
				}
			}
			if throttles.Load() != tc.want {
				t.Errorf("%d throttles, want %d", throttles.Load(), tc.want)
			}
		})
	}
}
