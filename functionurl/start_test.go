package functionurl_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functionurl"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/memlane"
)

// programVariable makes this test's binary the function's.
const programVariable = "FUNCTIONURL_TEST_PROGRAM"

// Idle connections belong to the HTTP client of Lambda's library, which lives as long as the process.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		functionurl.Start(func(ctx context.Context) (*core.Runtime, error) {
			return core.Open(ctx, memlane.New(), nil)
		}, nil) // does not return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// process is the function as Lambda runs it.
func process(t *testing.T, variables ...string) *lambdatest.Function {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := lambdatest.New(lambdatest.Options{Program: binary, Environment: append([]string{programVariable + "=1"}, variables...)})
	t.Cleanup(f.Close)
	return f
}

// ask invokes it with a request, and returns the payload of its answer.
func ask(t *testing.T, f *lambdatest.Function, method, path string) string {
	t.Helper()
	answer, err := f.InvokeJSON(t.Context(), request(method, path, ""))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Failure != "" {
		t.Fatalf("%s %s: %s: %s\n%s", method, path, answer.Failure, answer.Payload, f.Log())
	}
	return string(answer.Payload)
}

func TestStart_Streamed_AnswersInLambdasForm(t *testing.T) {
	t.Parallel()
	f := process(t, functions.RoleVariable+"=server")
	head, body, found := strings.Cut(ask(t, f, http.MethodGet, "/v1/runs"), strings.Repeat("\x00", 8))
	var answer struct {
		StatusCode int
		Headers    map[string]string
	}
	if err := json.Unmarshal([]byte(head), &answer); err != nil || !found || answer.StatusCode != http.StatusOK {
		t.Errorf("%q and %q: %v", head, body, err)
	}
	if !strings.HasPrefix(body, `{"v":1,`) {
		t.Errorf("the body is %q", body)
	}
	if page := ask(t, f, http.MethodGet, "/"); !strings.Contains(page, "<html") { // for known callers: no page to log in
		t.Errorf("there is no console: %s", page)
	}
	if refused := ask(t, f, http.MethodPost, "/v1/tick"); !strings.HasPrefix(refused, `{"statusCode":403,`) {
		t.Errorf("callers may more than read by default: %s", refused)
	}
}

func TestStart_Buffered_AnswersInLambdasForm(t *testing.T) {
	t.Parallel()
	f := process(t, functions.RoleVariable+"=server", functionurl.BufferedVariable+"=on", functionurl.ScopesVariable+"=read, operate")
	var answer struct {
		StatusCode int
		Body       string
	}
	text := ask(t, f, http.MethodPost, "/v1/tick")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Body, "{") {
		t.Errorf("%s: %v", text, err)
	}
}

// A function that is configured wrongly fails its invocations, and its log says why.
func TestStart_WrongConfiguration_IsSaid(t *testing.T) {
	t.Parallel()
	for says, variables := range map[string][]string{
		`RUNLANE_FUNCTION is \"bridge\"`:                  {functions.RoleVariable + "=bridge"},
		`RUNLANE_FUNCTION is \"\"`:                        nil,
		`RUNLANE_SERVER_SCOPES has \"write\"`:             {functions.RoleVariable + "=server", functionurl.ScopesVariable + "=read,write"},
		`RUNLANE_SECRETS has no role \"server\"`:          {functions.RoleVariable + "=server", functions.SecretsVariable + "=bridge="},
		`RUNLANE_SERVER_SCOPES has \"\", which is no sco`: {functions.RoleVariable + "=server", functionurl.ScopesVariable + "=,"},
	} {
		f := process(t, variables...)
		answer, err := f.InvokeJSON(t.Context(), request(http.MethodGet, "/v1/runs", ""))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Failure != lambdatest.FailureUnhandled || !strings.Contains(string(answer.Payload), "configuration_invalid") {
			t.Errorf("%s: %s %s", says, answer.Failure, answer.Payload)
		}
		f.Close() // the log comes by a pipe, which may be later than the answer
		if !strings.Contains(f.Log(), says) || strings.Count(f.Log(), "the runtime cannot open") != 1 {
			t.Errorf("the log does not say %s once: %s", says, f.Log())
		}
	}
}

// A stream that is never over would be an answer that never comes.
func TestBuffered_Events_AreCollectedForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		answer, err := functionurl.Buffered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("event: one\n\n"))
			<-r.Context().Done()
		}))(ctx, request(http.MethodGet, "/events", ""))
		if err != nil || answer.Body != "event: one\n\n" || answer.StatusCode != http.StatusOK {
			t.Errorf("%+v, %v", answer, err)
		}
		if took := time.Since(began); took != functionurl.BufferedStream {
			t.Errorf("it took %s", took)
		}
	})
}
