package webhooks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bodies are JSON that any decoding and encoding on the way would change.
var bodies = map[string]Payload{
	"markup and numbers":  `{"a": "<b>&amp;</b>", "n": 1.0e2}`,
	"spacing":             "[ 1,\t2 , {  \"a\" :\t\"b\" } ]",
	"lone surrogates":     `{"text":"\ud800 and \udc00"}`,
	"escapes of any form": `{"text":"\u00e9é\/\u2028"}`,
	"line separators":     "{\"text\":\"\u2028\u2029\"}",
	"big numbers":         `[12345678901234567890123456789, 1.10, -0, 1E400]`,
	"repeated names":      `{"a":1,"a":2}`,
	"not an object":       `"plain"`,
	"null":                `null`,
}

// newSender returns a sender whose every endpoint is the handler.
func newSender(t *testing.T, timeout time.Duration, handler http.HandlerFunc) *Sender {
	t.Helper()
	server := httptest.NewServer(handler)
	client := NewClient(timeout)
	client.Transport = server.Client().Transport
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &Sender{Client: client, Endpoints: func(string) (string, error) { return server.URL, nil }, Secret: []byte("secret")}
}

// stall answers nothing until the client hangs up, which a server notices only after it has read the body.
func stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestDeliver_AnswerDecidesTheOutcome(t *testing.T) {
	t.Parallel()
	const delivered, retried, permanent = "delivered", "retried", "permanent"
	cases := []struct {
		name        string
		status      int
		retryAfter  string
		want        string
		least, most time.Duration // of a delay that the endpoint chose
	}{
		{name: "200", status: 200, want: delivered},
		{name: "202", status: 202, want: delivered},
		{name: "204", status: 204, want: delivered},
		{name: "redirect", status: 302, want: retried},
		{name: "not modified", status: 304, want: retried},
		{name: "bad request", status: 400, want: permanent},
		{name: "unauthorized", status: 401, want: permanent},
		{name: "not found", status: 404, want: permanent},
		{name: "request timeout", status: 408, want: retried},
		{name: "gone", status: 410, want: permanent},
		{name: "gone with retry after", status: 410, retryAfter: "5", want: permanent},
		{name: "too many requests", status: 429, want: retried},
		{name: "too many requests, seconds", status: 429, retryAfter: "7", want: retried, least: 7 * time.Second, most: 7 * time.Second},
		{
			name: "too many requests, date", status: 429, want: retried, least: 20 * time.Minute, most: 30 * time.Minute,
			retryAfter: time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat),
		},
		{name: "too many requests, nonsense", status: 429, retryAfter: "soon", want: retried},
		{name: "server error", status: 500, want: retried},
		{name: "unavailable, seconds", status: 503, retryAfter: "120", want: retried, least: 2 * time.Minute, most: 2 * time.Minute},
		{name: "gateway timeout", status: 504, want: retried},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sender := newSender(t, 5*time.Second, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			err := sender.Deliver(t.Context(), &runlane.Attempt{}, Delivery{ID: "1", Event: "push", Endpoint: "main", Payload: "{}"})

			_, isPermanent := errors.AsType[*runlane.PermanentError](err)
			got := map[bool]string{true: permanent, false: retried}[isPermanent]
			if err == nil {
				got = delivered
			}
			if got != c.want {
				t.Fatalf("%s, want %s: %v", got, c.want, err)
			}
			code := map[string]runlane.ErrorCode{retried: ErrNotDelivered, permanent: ErrRefused}[c.want]
			if runlane.CodeOf(err) != code {
				t.Errorf("code %q, want %q", runlane.CodeOf(err), code)
			}
			chosen := time.Duration(0)
			if after, ok := errors.AsType[*runlane.RetryAfterError](err); ok {
				chosen = after.Delay
			}
			if chosen < c.least || chosen > c.most {
				t.Errorf("the endpoint's delay is %s, want %s to %s", chosen, c.least, c.most)
			}
		})
	}
}

func TestDeliver_Request(t *testing.T) {
	t.Parallel()
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var request *http.Request
			var got []byte
			sender := newSender(t, 5*time.Second, func(_ http.ResponseWriter, r *http.Request) {
				request = r
				got, _ = io.ReadAll(r.Body)
			})
			delivery := Delivery{ID: "delivery-1", Event: "issues", Endpoint: "main", Payload: body}
			if err := sender.Deliver(t.Context(), &runlane.Attempt{}, delivery); err != nil {
				t.Fatal(err)
			}
			if string(got) != string(body) {
				t.Errorf("body\n%q, want\n%q", got, body)
			}
			if !Verify([]byte("secret"), []byte(body), request.Header.Get(SignatureHeader)) {
				t.Errorf("signature %q is not that of the body", request.Header.Get(SignatureHeader))
			}
			if request.Method != http.MethodPost || request.ContentLength != int64(len(body)) ||
				request.Header.Get(IdempotencyHeader) != "delivery-1" || request.Header.Get(EventHeader) != "issues" ||
				request.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s with %d bytes and %v", request.Method, request.ContentLength, request.Header)
			}
		})
	}
}

func TestDeliver_NoAnswer_IsRetried(t *testing.T) {
	t.Parallel()
	silent := newSender(t, 20*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) { stall(r) })
	broken := newSender(t, 5*time.Second, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	refused := newSender(t, 5*time.Second, nil)
	refused.Endpoints = func(string) (string, error) { return "http://127.0.0.1:1/?token=hidden", nil }
	for name, sender := range map[string]*Sender{"timeout": silent, "connection lost": broken, "no listener": refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := sender.Deliver(t.Context(), &runlane.Attempt{}, Delivery{ID: "1", Event: "push", Endpoint: "main", Payload: "{}"})
			if _, permanent := errors.AsType[*runlane.PermanentError](err); permanent || !errors.Is(err, ErrNotDelivered) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows the URL: %v", err)
			}
		})
	}
}

func TestDeliver_ContextEnds_ReturnsItsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	sender := newSender(t, 5*time.Second, func(_ http.ResponseWriter, r *http.Request) {
		cancel(runlane.ErrShutdown)
		stall(r)
	})
	err := sender.Deliver(ctx, &runlane.Attempt{}, Delivery{ID: "1", Event: "push", Endpoint: "main", Payload: "{}"})
	if !errors.Is(err, context.Canceled) || runlane.CodeOf(err) != "" {
		t.Errorf("got %v", err)
	}
}

func TestDeliver_EndlessBody_IsNotRead(t *testing.T) {
	t.Parallel()
	sender := newSender(t, 5*time.Second, func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 32<<10); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if err := sender.Deliver(t.Context(), &runlane.Attempt{}, Delivery{ID: "1", Event: "push", Payload: "{}"}); err != nil {
		t.Errorf("the answer was 200, got %v", err)
	}
}

func TestDeliver_EndpointIsLookedUpAtEachAttempt(t *testing.T) {
	t.Parallel()
	sender := newSender(t, 5*time.Second, func(http.ResponseWriter, *http.Request) {})
	parsed, err := ParseEndpoints("")
	if err != nil {
		t.Fatal(err)
	}
	working, known := sender.Endpoints, false
	sender.Endpoints = func(name string) (string, error) {
		if !known {
			return parsed(name)
		}
		return working(name)
	}
	delivery := Delivery{ID: "1", Event: "push", Endpoint: "new", Payload: "{}"}
	err = sender.Deliver(t.Context(), &runlane.Attempt{}, delivery)
	if _, permanent := errors.AsType[*runlane.PermanentError](err); permanent || !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("before it is configured: %v", err)
	}
	known = true
	if err := sender.Deliver(t.Context(), &runlane.Attempt{}, delivery); err != nil {
		t.Errorf("once it is configured: %v", err)
	}
}

func TestDeliver_UnusableURL_IsConfiguration(t *testing.T) {
	t.Parallel()
	sender := &Sender{Client: NewClient(time.Second), Endpoints: func(string) (string, error) { return "://", nil }}
	err := sender.Deliver(t.Context(), &runlane.Attempt{}, Delivery{ID: "1", Event: "push", Payload: "{}"})
	if !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"-5":                               0,
		"1.5":                              0,
		"30":                               30 * time.Second,
		"3600":                             time.Hour,
		"86400":                            maxRetryAfter,
		"99999999999999999999":             0, // not a number any more
		"2147483647":                       maxRetryAfter,
		"Sat, 21 Nov 2026 12:00:30 GMT":    30 * time.Second,
		"Saturday, 21-Nov-26 12:01:00 GMT": time.Minute,
		"Sat Nov 21 12:02:00 2026":         2 * time.Minute,
		"Sat, 21 Nov 2026 11:59:59 GMT":    0,
		"Sun, 22 Nov 2099 12:00:00 GMT":    maxRetryAfter,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", header, got, want)
		}
	}
}

func TestSign_IsHMACSHA256(t *testing.T) {
	t.Parallel()
	// GitHub's published example of this very scheme.
	secret, body := []byte("It's a Secret to Everybody"), []byte("Hello, World!")
	const want = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if got := Sign(secret, body); got != want {
		t.Errorf("got %s", got)
	}
	for signature, valid := range map[string]bool{want: true, "": false, strings.ToUpper(want): false, want[:70]: false, want + "0": false} {
		if Verify(secret, body, signature) != valid {
			t.Errorf("%q: valid is %t", signature, !valid)
		}
	}
}
