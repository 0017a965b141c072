package functionurl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functionurl"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/server"
)

func TestRequest_IsThatOfTheEvent(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, call func(http.Handler, *events.LambdaFunctionURLRequest) said) {
		t.Helper()
		for name, tc := range map[string]struct {
			change func(*events.LambdaFunctionURLRequest)
			want   string // method, URI, address, length and body, cookie, Accept
		}{
			"plain":        {func(*events.LambdaFunctionURLRequest) {}, "GET /a%2Fb/c?q=1&q=2 192.0.2.7:0 0 \"\" \"\" \"\""},
			"no path":      {func(e *events.LambdaFunctionURLRequest) { e.RawPath, e.RawQueryString = "", "" }, "GET / 192.0.2.7:0 0 \"\" \"\" \"\""},
			"IPv6 address": {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.SourceIP = "2001:db8::1" }, "GET /a%2Fb/c?q=1&q=2 [2001:db8::1]:0 0 \"\" \"\" \"\""},
			"text body": {func(e *events.LambdaFunctionURLRequest) { e.RequestContext.HTTP.Method, e.Body = "POST", "é" },
				"POST /a%2Fb/c?q=1&q=2 192.0.2.7:0 2 \"é\" \"\" \"\""},
			"binary body": {func(e *events.LambdaFunctionURLRequest) {
				e.RequestContext.HTTP.Method, e.Body, e.IsBase64Encoded = "PUT", "AP8=", true
			}, "PUT /a%2Fb/c?q=1&q=2 192.0.2.7:0 2 \"\\x00\\xff\" \"\" \"\""},
			"cookies alone": {func(e *events.LambdaFunctionURLRequest) { e.Cookies = []string{"a=1", "b=2"} },
				"GET /a%2Fb/c?q=1&q=2 192.0.2.7:0 0 \"\" \"a=1; b=2\" \"\""},
			"cookies and their header": {func(e *events.LambdaFunctionURLRequest) {
				e.Cookies, e.Headers["cookie"] = []string{"a=1"}, "a=1"
			}, "GET /a%2Fb/c?q=1&q=2 192.0.2.7:0 0 \"\" \"a=1\" \"\""},
			"joined headers": {func(e *events.LambdaFunctionURLRequest) { e.Headers["accept"] = "text/html,*/*" },
				"GET /a%2Fb/c?q=1&q=2 192.0.2.7:0 0 \"\" \"\" \"text/html,*/*\""},
		} {
			event := request("GET", "/a%2Fb/c", "q=1&q=2")
			event.Headers["x-amz-security-token"] = "secret"
			tc.change(event)
			got := ""
			call(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.Host != "abc.lambda-url.eu-west-1.on.aws" || r.Header.Get("X-Amz-Security-Token") != "" {
					t.Errorf("%s: %v, host %q, %v", name, err, r.Host, r.Header)
				}
				if deadline, ok := r.Context().Deadline(); !ok || time.Until(deadline) > patience.Limit-time.Second {
					t.Errorf("%s: the request ends with its invocation, or later: %v", name, deadline)
				}
				got = fmt.Sprintf("%s %s %s %d %q %q %q", r.Method, r.RequestURI, r.RemoteAddr, r.ContentLength, body,
					r.Header.Get("Cookie"), r.Header.Get("Accept"))
			}), event)
			equal(t, name, got, tc.want)
		}
	})
}

func TestAnswer_IsThatOfTheHandler(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, call func(http.Handler, *events.LambdaFunctionURLRequest) said) {
		t.Helper()
		got := call(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.Header().Add("Vary", "Cookie")
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte{0, 0xff})
		}), request("GET", "/", ""))
		equal(t, "status", got.status, http.StatusTeapot)
		equal(t, "headers", got.header, map[string]string{"Vary": "Accept,Cookie"})
		equal(t, "cookies", got.cookies, []string{"a=1", "b=2"})
		equal(t, "body", got.body, "\x00\xff")
		got = call(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("not for HEAD"))
		}), request("HEAD", "/", ""))
		equal(t, "HEAD", []any{got.status, got.body}, []any{200, ""})
		got = call(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), request("GET", "/", ""))
		equal(t, "nothing", []any{got.status, got.body}, []any{200, ""})
	})
}

// A panic would end the process, and with it what other answers are under way.
func TestAnswer_OfAHandlerThatPanics_IsAProblem(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, call func(http.Handler, *events.LambdaFunctionURLRequest) said) {
		t.Helper()
		got := call(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("scripted") }), request("GET", "/", ""))
		isProblem(t, "before the answer", got, http.StatusInternalServerError, "internal_error")
		got = call(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}), request("GET", "/", ""))
		equal(t, "within the answer", []any{got.status, got.body}, []any{200, "half"})
	})
}

func isProblem(t *testing.T, what string, got said, status int, code string) {
	t.Helper()
	var p struct {
		Title, Detail, Code, Hint string
		Status                    int
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%s: %q is no problem: %v", what, got.body, err)
	}
	equal(t, what, []any{got.status, p.Status, p.Code, got.header["Content-Type"], got.header["Cache-Control"]},
		[]any{status, status, code, "application/problem+json", "no-store"})
	if p.Title == "" || p.Detail == "" || p.Hint == "" {
		t.Errorf("%s: %s says too little", what, got.body)
	}
}

// Nothing reaches the handler of a caller whom IAM did not let in, as of a URL with the authentication NONE, or of an
// event that is no request.
func TestEvent_ThatIsNoRequestOfAKnownCaller_ReachesNothing(t *testing.T) {
	t.Parallel()
	type event = events.LambdaFunctionURLRequest
	iam := func(arn string) func(*event) {
		return func(e *event) { e.RequestContext.Authorizer.IAM.UserARN = arn }
	}
	inEachMode(t, func(t *testing.T, call func(http.Handler, *event) said) {
		t.Helper()
		for name, change := range map[string]func(*event){
			"no authorizer":     func(e *event) { e.RequestContext.Authorizer = nil },
			"no IAM":            func(e *event) { e.RequestContext.Authorizer.IAM = nil },
			"no principal":      iam(""),
			"no ARN":            iam("ada"),
			"a service's":       iam("arn:aws:lambda:eu-west-1:123456789012:function:f"),
			"no account":        iam("arn:aws:iam:::user/ada"),
			"a colon":           iam("arn:aws:iam::123456789012:user/a:b"),
			"a control":         iam("arn:aws:iam::123456789012:user/a\nb"),
			"a very long one":   iam("arn:aws:iam::123456789012:user/" + strings.Repeat("a", 2000)),
			"a probe's request": func(e *event) { e.RequestContext.Authorizer, e.RawPath = nil, "/healthz" },
		} {
			e := request("GET", "/v1/runs", "")
			change(e)
			isProblem(t, name, call(never(t, name), e), http.StatusUnauthorized, "unauthenticated")
		}
		for name, change := range map[string]func(*event){
			"no method":           func(e *event) { e.RequestContext.HTTP.Method = "" },
			"a method of blanks":  func(e *event) { e.RequestContext.HTTP.Method = "GET / HTTP/1.1" },
			"no base64":           func(e *event) { e.Body, e.IsBase64Encoded = "%", true },
			"no path":             func(e *event) { e.RawPath = "runs" },
			"a path with a query": func(e *event) { e.RawPath = "/a?b" },
			"a wrong escape":      func(e *event) { e.RawPath = "/%zz" },
			"a control":           func(e *event) { e.RawPath = "/a\x00" },
			"a fragment":          func(e *event) { e.RawQueryString = "a#b" },
			"another host":        func(e *event) { e.RequestContext.DomainName = "a@b" },
			"a path as the host":  func(e *event) { e.RequestContext.DomainName = "a/b" },
		} {
			e := request("GET", "/v1/runs", "")
			change(e)
			isProblem(t, name, call(never(t, name), e), http.StatusBadRequest, "validation_failed")
		}
		isProblem(t, "no event", call(never(t, "no event"), nil), http.StatusBadRequest, "validation_failed")
	})
}

func never(t *testing.T, name string) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler was called", name) })
}

func FuzzFunctionURL(f *testing.F) {
	f.Add([]byte(`{"rawPath":"/v1/runs","requestContext":{"http":{"method":"GET"},"authorizer":{"iam":{"userArn":"arn:aws:iam::1:root"}}}}`))
	f.Add([]byte(`{"rawPath":"/","body":"AP8=","isBase64Encoded":true,"cookies":["a"],"headers":{"cookie":"b"}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var event *events.LambdaFunctionURLRequest
		if json.Unmarshal(text, &event) != nil {
			return
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if caller, err := functionurl.Access(server.ScopeRead)(r); err != nil || caller.Actor.ID == "" {
				t.Errorf("the handler has a caller without a name: %v, %v", caller, err)
			}
			_, _ = io.Copy(w, r.Body)
		})
		for _, mode := range modes {
			mode(t, h, event)
		}
	})
}

func TestAccess_NamesThePrincipal(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{
		ada: "123456789012/assumed-role/admin/ada",
		"arn:aws:iam::123456789012:user/team/ada":          "123456789012/user/team/ada",
		"arn:aws:iam::123456789012:root":                   "123456789012/root",
		"arn:aws-cn:sts::123456789012:federated-user/ada":  "123456789012/federated-user/ada",
		"arn:aws:sts::123456789012:assumed-role/r/a@b.com": "123456789012/assumed-role/r/a@b.com",
	} {
		event := request("GET", "/", "")
		event.RequestContext.Authorizer.IAM.UserARN = arn
		modes["buffered"](t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got, err := functionurl.Access(server.ScopeRead, server.ScopeTrigger)(r)
			if err != nil {
				t.Error(err)
			}
			equal(t, arn, got, server.Access{
				Actor:  runlane.Actor{Type: runlane.ActorOperator, ID: want},
				Scopes: []server.Scope{server.ScopeRead, server.ScopeTrigger},
			})
		}), event)
	}
	plain, err := http.NewRequestWithContext(t.Context(), "GET", "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := functionurl.Access(server.ScopeRead)(plain); !errors.Is(err, server.ErrUnauthenticated) {
		t.Errorf("a request of no function URL: %v", err)
	}
}

func TestBuffered_AnswerThatIsTooLarge_IsAProblem(t *testing.T) {
	t.Parallel()
	const piece = 1 << 20
	for pieces, want := range map[int]int{functionurl.MaxBuffered / piece: 200, functionurl.MaxBuffered/piece + 1: http.StatusInsufficientStorage} {
		got := modes["buffered"](t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Set-Cookie", "a=1")
			for range pieces {
				if _, err := w.Write(bytes.Repeat([]byte{'"'}, piece)); err != nil {
					break
				}
			}
		}), request("GET", "/", ""))
		equal(t, "status", got.status, want)
		if want != 200 {
			isProblem(t, "too large", got, want, "too_large")
			equal(t, "cookies", got.cookies, []string(nil))
		}
	}
}
