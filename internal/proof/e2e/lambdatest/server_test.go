package lambdatest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functionurl"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// The fourth program answers requests to its URL, on the table that the others work on.
func TestServer_AnswersRequestsOfKnownCallers(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{name: "webhooks"})
	f := i.deploy("server", functionurl.Role, lambdatest.Options{}, map[string]string{
		webhooks.EndpointsVariable: "shop=http://127.0.0.1:9", webhooks.SecretVariable: "secret", functionurl.ScopesVariable: "read,trigger",
	})
	ask := func(caller, method, path, body string) (status int, text string) {
		t.Helper()
		event := &events.LambdaFunctionURLRequest{
			RawPath: path, Body: body, Headers: map[string]string{"content-type": "application/json"},
			RequestContext: events.LambdaFunctionURLRequestContext{
				HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{Method: method, SourceIP: "192.0.2.7"},
				Authorizer: &events.LambdaFunctionURLRequestContextAuthorizerDescription{
					IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: caller},
				},
			},
		}
		answer := invoke(t, f, event)
		head, text, found := strings.Cut(string(answer.Payload), strings.Repeat("\x00", 8))
		var prelude struct{ StatusCode int }
		if err := json.Unmarshal([]byte(head), &prelude); err != nil || !found {
			t.Fatalf("%s %q is no streamed answer: %v", answer.Failure, answer.Payload, err)
		}
		return prelude.StatusCode, text
	}
	const ada = "arn:aws:iam::123456789012:user/ada"
	if status, text := ask("", http.MethodGet, "/healthz", ""); status != http.StatusUnauthorized {
		t.Errorf("without a principal: %d %s", status, text)
	}
	const body = `{"task":"webhooks.check","payload":{"do":"succeed"},"runId":"by-url"}`
	if status, text := ask(ada, http.MethodPost, "/v1/runs", body); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	run, err := i.Runs().Get(t.Context(), "by-url")
	if err != nil || run.Status != runlane.StatusQueued {
		t.Errorf("%+v, %v", run, err)
	}
	if status, text := ask(ada, http.MethodPost, "/v1/tick", ""); status != http.StatusForbidden {
		t.Errorf("a scope that it has not: %d %s", status, text)
	}
	if len(f.Processes()) != 1 {
		t.Errorf("%d processes: one of them ended", len(f.Processes()))
	}
}
