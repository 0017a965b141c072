package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/outbound"
	"github.com/runlane/runlane-go/server"
)

const (
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the scheme's published example
	otherSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// The published example of the Standard Webhooks scheme.
func TestSignature_IsThatOfTheScheme(t *testing.T) {
	t.Parallel()
	const id, at, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got, err := server.Signature([]string{secret}, id, at, body); err != nil || got != want {
		t.Errorf("%v: %s", err, got)
	}
	both, err := server.Signature([]string{otherSecret, secret}, id, at, body)
	if parts := strings.Split(both, " "); err != nil || len(parts) != 2 || parts[0] == want || parts[1] != want {
		t.Errorf("with two secrets: %v: %s", err, both)
	}
}

func TestNewWebhooks_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	sound := server.Webhook{URL: "https://example.com/hook", Secrets: []string{secret}}
	for says, change := range map[string]func(h *server.Webhook){
		"not an id":                  func(h *server.Webhook) { h.Name = "a:b" },
		"a URL that is not https":    func(h *server.Webhook) { h.URL = "http://example.com/" },
		"a URL that is none":         func(h *server.Webhook) { h.URL = "https:///path" },
		"a user or a fragment":       func(h *server.Webhook) { h.URL = "https://hidden:hidden@example.com/" },
		"has 0 secrets":              func(h *server.Webhook) { h.Secrets = nil },
		"has 3 secrets":              func(h *server.Webhook) { h.Secrets = []string{secret, secret, secret} },
		"none of the scheme":         func(h *server.Webhook) { h.Secrets = []string{"hidden"} },
		"number 2, that is none":     func(h *server.Webhook) { h.Secrets = []string{secret, "whsec_aGlkZGVu"} },
		"which ends no run":          func(h *server.Webhook) { h.Statuses = []runlane.Status{runlane.StatusQueued} },
		"which none can be":          func(h *server.Webhook) { h.Tasks = []runlane.TaskID{""} },
		"has the timeout 2m0s":       func(h *server.Webhook) { h.Timeout = 2 * time.Minute },
		"two webhooks have the name": func(h *server.Webhook) { h.Name = "twice" },
	} {
		hook := sound
		change(&hook)
		second := hook
		if hook.Name != "twice" {
			second = server.Webhook{Name: "sound", URL: sound.URL, Secrets: sound.Secrets}
		}
		_, err := server.NewWebhooks(hook, second)
		if err == nil || runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", says, err)
		}
	}
	if _, err := server.NewWebhooks(); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("no webhooks: %v", err)
	}
	if _, err := server.NewWebhooks(sound); err != nil {
		t.Error(err)
	}
}

// receiving is a receiver on this machine, and a webhook that leads to it.
func receiving(t *testing.T, answer http.HandlerFunc, change func(h *server.Webhook)) *server.Webhooks {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	hook := server.Webhook{URL: s.URL + "/hook", Secrets: []string{otherSecret, secret}, Private: true}
	if change != nil {
		change(&hook)
	}
	w, err := server.NewWebhooks(hook)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestDeliver_SignsAndSendsTheBodyAsItIs(t *testing.T) {
	t.Parallel()
	const body = `{ "n":  1 }`
	came, began := make(chan error, 1), time.Now().Unix()
	w := receiving(t, func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		at := r.Header.Get("webhook-timestamp")
		want, _ := server.Signature([]string{otherSecret, secret}, "msg_1", at, body)
		seconds, _ := strconv.ParseInt(at, 10, 64)
		switch {
		case err != nil || string(text) != body || r.Method != http.MethodPost || r.URL.Path != "/hook":
			err = fmt.Errorf("%w: %s %s %s", err, r.Method, r.URL, text)
		case r.Header.Get("webhook-id") != "msg_1" || r.Header.Get("webhook-signature") != want:
			err = fmt.Errorf("headers are %v", r.Header)
		case seconds < began || seconds > time.Now().Unix() || r.Header.Get("Content-Type") != "application/json":
			err = fmt.Errorf("headers are %v", r.Header)
		}
		came <- err
	}, nil)
	if err := w.Deliver(t.Context(), "default", "msg_1", body); err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Error(err)
	}
}

func TestDeliver_AnswersDecide(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	large := bytes.Repeat([]byte("x"), 10<<20)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   runlane.ErrorCode // "": it is delivered
		says   string
	}{
		"204":     {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		"10 MB":   {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) }},
		"500":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, server.ErrWebhookNotDelivered, "answered 500"},
		"404":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, server.ErrWebhookNotDelivered, "answered 404"},
		"410":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, server.ErrWebhookGone, "answered 410"},
		"hang up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, server.ErrWebhookNotDelivered, "did not answer"},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			},
			server.ErrWebhookNotDelivered, "redirects are not followed",
		},
		"large header": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", string(large[:1<<20])) },
			server.ErrWebhookNotDelivered, "did not answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := receiving(t, c.answer, nil).Deliver(t.Context(), "default", "msg_1", "{}")
			if runlane.CodeOf(err) != c.code || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "/hook")) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDeliver_WaitsAsLongAsTheAnswerSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it is midnight before the first of January 2000, a Saturday
		for text, want := range map[string]time.Duration{
			"120": 2 * time.Minute, "0": 0, "": 0, "-1": 0, "soon": 0, "1.5": 0,
			"99999999999999999999":          6 * time.Hour,
			"Sat, 01 Jan 2000 00:02:00 GMT": 2 * time.Minute, "Saturday, 01-Jan-00 00:02:00 GMT": 2 * time.Minute,
			"Sat Jan  1 00:02:00 2000":      2 * time.Minute,
			"Fri, 31 Dec 1999 23:59:59 GMT": 0, "Fri, 31 Dec 2100 23:59:59 GMT": 6 * time.Hour,
		} {
			answer := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {text}}}
			_, err := server.JudgeWebhook(server.Webhook{URL: "https://example.com", Secrets: []string{secret}}, "1.1.1.1:443", answer)
			after, asked := errors.AsType[*runlane.RetryAfterError](err)
			if runlane.CodeOf(err) != server.ErrWebhookNotDelivered || asked != (want > 0) || asked && after.Delay != want {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestDeliver_AReceiverThatNeverAnswers_IsLeft(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	w := receiving(t, func(http.ResponseWriter, *http.Request) { <-over },
		func(h *server.Webhook) { h.Timeout = 50 * time.Millisecond })
	t.Cleanup(func() { close(over) }) // before the receiver closes
	if err := w.Deliver(t.Context(), "default", "msg_1", "{}"); runlane.CodeOf(err) != server.ErrWebhookNotDelivered {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Deliver(ctx, "default", "msg_1", "{}"); !errors.Is(err, context.Canceled) {
		t.Errorf("an attempt that was cancelled fails with %v", err)
	}
}

// The address that a name leads to decides, when the connection is made.
func TestDeliver_PrivateAddresses_AreRefusedBeforeTheyAreReached(t *testing.T) {
	t.Parallel()
	reached := false
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer s.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"} {
		to := "https://" + host + s.URL[strings.LastIndex(s.URL, ":"):]
		w, err := server.NewWebhooks(server.Webhook{URL: to, Secrets: []string{secret}})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Deliver(t.Context(), "default", "msg_1", "{}")
		if err == nil || !strings.Contains(err.Error(), "leads to an address that is refused") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if reached {
		t.Error("a request reached this machine")
	}
	// http stays among private addresses. This one is public, and is refused before a packet is sent.
	w, err := server.NewWebhooks(server.Webhook{URL: "http://1.1.1.1/", Secrets: []string{secret}, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Deliver(t.Context(), "default", "msg_1", "{}"); err == nil || !strings.Contains(err.Error(), "is refused") {
		t.Errorf("http to a public address: %v", err)
	}
}

// Whatever stands in options, and whatever receivers answer: no secret is repeated, and no private address is reached.
func FuzzWebhook(f *testing.F) {
	f.Add("https://example.com/hook?key=hidden", secret, "127.0.0.1:443", "120", 503)
	f.Add("http://[::1]:80", "whsec_", "[::ffff:10.0.0.1]:80", "Fri, 31 Dec 1999 23:59:59 GMT", 410)
	f.Add("https://user:pass@host", "whsec_AAAA", "[fe80::1%eth0]:443", "-1", 302)
	f.Add("https://%zz", "", "nowhere", "99999999999999999999", 200)
	f.Fuzz(func(t *testing.T, to, key, address, after string, status int) {
		answer := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}
		reach, outcome := server.JudgeWebhook(server.Webhook{URL: to, Secrets: []string{key}}, address, answer)
		if at, err := netip.ParseAddrPort(address); reach == nil && (err != nil || !outbound.IsPublic(at.Addr())) {
			t.Errorf("%q is reached", address)
		}
		if (outcome == nil) != (status >= 200 && status <= 299) && runlane.CodeOf(outcome) != runlane.ErrConfigurationInvalid {
			t.Errorf("%d is %v", status, outcome)
		}
		if len(key) > 16 && outcome != nil && strings.Contains(outcome.Error(), key) {
			t.Errorf("an error repeats the secret: %v", outcome)
		}
	})
}
