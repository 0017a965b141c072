//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// TestServer_Deployed_AnswersWhomIAMLetsIn deploys a stack with the server: a caller whom IAM named triggers a run by it, which the deployed
// bridge executes. Local AWS asks no caller of a URL who it is, as a URL with the authentication NONE, and no such caller gets in.
func TestServer_Deployed_AnswersWhomIAMLetsIn(t *testing.T) {
	d := &deployed{endpoint: receive(t), log: t.Output(), name: fmt.Sprintf("runlane-url-%x", time.Now().UnixNano())}
	d.parameters = map[string]string{
		"WebhookSecret": secret, "WebhookEndpoints": address(d.endpoint), "ServerScopes": "read,trigger",
	}
	d.deploy(t)
	t.Cleanup(func() {
		if err := d.stack.delete(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d.open(t)
	if status, body := d.byURL(t, "healthz"); status != http.StatusUnauthorized || !strings.Contains(body, `"code":"unauthenticated"`) {
		t.Errorf("without a principal: %d %s", status, body)
	}
	head, body := d.invoked(t, http.MethodPost, "/v1/runs", `{"task":"webhooks.check","payload":{"do":"succeed"},"runId":"by-url"}`)
	if head.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", head.StatusCode, body)
	}
	run, err := d.rt.Runs().Get(t.Context(), "by-url")
	if err != nil {
		t.Fatal(err)
	}
	d.wantSucceeded(t, run)
	for record, err := range d.rt.Runs().Events(t.Context(), "by-url", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Sequence == 1 && record.Actor.ID != "123456789012/user/ada" {
			t.Errorf("the run was made by %+v", record.Actor)
		}
	}
	if head, body := d.invoked(t, http.MethodGet, "/events?run=by-url", ""); head.StatusCode != http.StatusOK || !strings.Contains(body, "event: run.succeeded") {
		t.Errorf("its events: %d %s", head.StatusCode, body)
	}
	if head, _ := d.invoked(t, http.MethodPost, "/v1/tick", ""); head.StatusCode != http.StatusForbidden {
		t.Errorf("what the scopes do not have is answered with %d", head.StatusCode)
	}
	delete(d.parameters, "ServerScopes") // SAM's command line takes no empty text
	d.update(t, nil)
	if d.stack.outputs["ServerUrl"] != "" {
		t.Errorf("without scopes there is still %s", d.stack.outputs["ServerUrl"])
	}
}

// byURL makes a request to the URL, whose name leads nowhere outside an account.
func (d *deployed) byURL(t *testing.T, path string) (status int, body string) {
	t.Helper()
	at, err := url.Parse(d.stack.outputs["ServerUrl"])
	if err != nil || at.Host == "" {
		t.Fatalf("the URL is %q: %v", d.stack.outputs["ServerUrl"], err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, os.Getenv("AWS_ENDPOINT_URL")+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = at.Host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// invoked invokes the function as its URL does for the user ada.
func (d *deployed) invoked(t *testing.T, method, target, body string) (head events.LambdaFunctionURLResponse, text string) {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	event, err := json.Marshal(&events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: path, RawQueryString: query, Body: body, Headers: map[string]string{"content-type": "application/json"},
		RequestContext: events.LambdaFunctionURLRequestContext{
			DomainName: "abc.lambda-url.us-east-1.on.aws",
			HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: method, SourceIP: "192.0.2.7"},
			Authorizer: &events.LambdaFunctionURLRequestContextAuthorizerDescription{
				IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::123456789012:user/ada"},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := d.stack.lambda(t.Context(), http.MethodPost, "ServerFunction", "invocations?Qualifier=live", string(event))
	if err != nil {
		t.Fatal(err)
	}
	prelude, text, found := strings.Cut(string(answer), strings.Repeat("\x00", 8))
	if err := json.Unmarshal([]byte(prelude), &head); err != nil || !found {
		t.Fatalf("%q is no streamed answer: %v", answer, err)
	}
	return head, text
}
