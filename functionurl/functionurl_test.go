package functionurl_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functionurl"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

const ada = "arn:aws:sts::123456789012:assumed-role/admin/ada"

// request is an event as a function URL sends it, of a caller whom IAM let in.
func request(method, path, query string) *events.LambdaFunctionURLRequest {
	return &events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: path, RawQueryString: query,
		Headers: map[string]string{"host": "abc.lambda-url.eu-west-1.on.aws", "x-forwarded-for": "192.0.2.7"},
		RequestContext: events.LambdaFunctionURLRequestContext{
			DomainName: "abc.lambda-url.eu-west-1.on.aws",
			HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: method, Path: path, SourceIP: "192.0.2.7"},
			Authorizer: &events.LambdaFunctionURLRequestContextAuthorizerDescription{
				IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: ada},
			},
		},
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// said is an answer in either mode.
type said struct {
	status  int
	header  map[string]string
	cookies []string
	body    string
}

var modes = map[string]func(*testing.T, http.Handler, *events.LambdaFunctionURLRequest) said{
	"streamed": func(t *testing.T, h http.Handler, event *events.LambdaFunctionURLRequest) said {
		t.Helper()
		r, err := functionurl.Streamed(h)(within(t), event)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return said{r.StatusCode, r.Headers, r.Cookies, string(body)}
	},
	"buffered": func(t *testing.T, h http.Handler, event *events.LambdaFunctionURLRequest) said {
		t.Helper()
		r, err := functionurl.Buffered(h)(within(t), event)
		if err != nil {
			t.Fatal(err)
		}
		if sent, err := json.Marshal(r); err != nil || len(sent) > 6<<20 {
			t.Errorf("the answer has %d bytes, more than Lambda takes: %v", len(sent), err)
		}
		body := []byte(r.Body)
		if r.IsBase64Encoded {
			if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
				t.Fatal(err)
			}
		}
		return said{r.StatusCode, r.Headers, r.Cookies, string(body)}
	},
}

// within is the context of an invocation.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, _ := patience.Context(t)
	return ctx
}

// inEachMode runs a test for both modes of a URL.
func inEachMode(t *testing.T, test func(*testing.T, func(http.Handler, *events.LambdaFunctionURLRequest) said)) {
	t.Helper()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(h http.Handler, event *events.LambdaFunctionURLRequest) said { return mode(t, h, event) })
		})
	}
}

var hello = runlane.NewTask("hello", &runlane.TaskOptions[string]{})

// api is the server of a runtime in memory, for callers of a function URL.
func api(t *testing.T, scopes ...server.Scope) (*core.Runtime, http.Handler) {
	t.Helper()
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
		Logger:   slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{hello.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h, err := server.New(rt, &server.Options{Access: functionurl.Access(scopes...), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return rt, h
}

// What a caller does by the URL bears the principal's name, and only the scopes of the function allow it.
func TestServer_BehindAFunctionURL_NamesWhoCalls(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, call func(http.Handler, *events.LambdaFunctionURLRequest) said) {
		t.Helper()
		trigger := request("POST", "/v1/runs", "")
		trigger.Headers["content-type"], trigger.Body = "application/json", `{"task":"hello","payload":"you","runId":"first"}`
		_, reading := api(t, server.ScopeRead)
		isProblem(t, "without the scope", call(reading, trigger), http.StatusForbidden, "forbidden")
		rt, h := api(t, server.ScopeRead, server.ScopeTrigger, server.ScopeOperate)
		equal(t, "trigger", call(h, trigger).status, http.StatusCreated)
		cancel := request("POST", "/v1/runs/first/cancel", "")
		equal(t, "cancel", call(h, cancel).status, http.StatusOK)
		var actors []string
		for record, err := range rt.Runs().Events(t.Context(), "first", nil) {
			if err != nil {
				t.Fatal(err)
			}
			if record.Actor.Type == runlane.ActorOperator {
				actors = append(actors, record.Actor.ID)
			}
		}
		if len(actors) == 0 || actors[0] != "123456789012/assumed-role/admin/ada" {
			t.Errorf("the events name %q", actors)
		}
	})
}

// Events of a run come while its request goes on.
func TestStreamed_EventsComeAsTheyHappen(t *testing.T) {
	t.Parallel()
	rt, h := api(t, server.ScopeRead)
	if _, err := rt.Trigger(t.Context(), hello.With("you"), &runlane.TriggerOptions{RunID: "first", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	response, err := functionurl.Streamed(h)(within(t), request("GET", "/events", "run=first"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
	}
	until("event: run.created")
	if _, err := rt.Runs().Cancel(t.Context(), "first", nil); err != nil {
		t.Fatal(err)
	}
	until("event: run.cancelled")
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
}

// A stream ends before its invocation, so that Lambda does not end it as a failure.
func TestStreams_EndBeforeTheirInvocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, streamEnds)
}

func streamEnds(t *testing.T) {
	rt, h := api(t, server.ScopeRead)
	if _, err := rt.Trigger(t.Context(), hello.With("you"), &runlane.TriggerOptions{RunID: "first", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	response, err := functionurl.Streamed(h)(ctx, request("GET", "/events", "run=first"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || ctx.Err() != nil || !bytes.Contains(body, []byte("event: run.created")) {
		t.Errorf("the stream ended with %v, its invocation with %v: %s", err, ctx.Err(), body)
	}
	buffered, err := functionurl.Buffered(h)(ctx, request("GET", "/events", "run=first"))
	if err != nil || buffered.StatusCode == 0 {
		t.Errorf("without time: %v, %v", buffered, err)
	}
}
