package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// A run that ends while the server serves is told; one that the flags leave out is not.
func TestServe_TellsAWebhookHowRunsEnd(t *testing.T) {
	t.Parallel()
	w, came := newWorld(), make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(strings.Fields(r.Header.Get("Webhook-Signature"))) != 2 {
			t.Errorf("%v: %v", err, r.Header)
		}
		came <- string(body)
	}))
	t.Cleanup(receiver.Close)
	w.env["SECRET"] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	_, stop := serving(t, w, t.TempDir(), "serve", "--webhook", receiver.URL, "--webhook-secret-env", "SECRET",
		"--webhook-private", "--webhook-status", "cancelled", "--webhook-task", "emails.welcome", "--webhook-payload")
	for _, args := range [][]string{
		{"trigger", "emails.patient", "{}", "--id", "other", "--delay", "1h"},
		{"trigger", "emails.welcome", `{"to":"u"}`, "--id", "told", "--delay", "1h"},
		{"runs", "cancel", "other", "--yes"},
		{"runs", "cancel", "told", "--yes"},
	} {
		if r := w.run(t.Context(), args...); r.code != cli.ExitOK {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	select {
	case body := <-came:
		if !strings.Contains(body, `"runId":"told"`) || !strings.Contains(body, `"payload":{"to":"u"}`) {
			t.Errorf("the webhook is told %s", body)
		}
	case <-time.After(patience.Limit):
		t.Error("the webhook is told nothing")
	}
	if r := stop(); r.code != cli.ExitOK || strings.Contains(r.stdout, "whsec_") {
		t.Errorf("%+v", r)
	}
	if len(came) > 0 {
		t.Errorf("it is told more: %s", <-came)
	}
}

func TestServe_AWebhookThatCannotBe_DoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.env["SECRET"] = "confidential"
	for url, says := range map[string]string{"http://example.com/": "not https", "https://example.com/": "none of the scheme"} {
		r := w.run(t.Context(), "serve", "--webhook", url, "--webhook-secret-env", "SECRET")
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "confidential") {
			t.Errorf("%+v", r)
		}
	}
}
