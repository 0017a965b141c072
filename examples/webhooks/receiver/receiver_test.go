package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/receiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("a secret of the tests")

func open(t *testing.T, options receiver.Options) *receiver.Receiver {
	t.Helper()
	options.Secret = secret
	if options.Ledger == "" {
		options.Ledger = filepath.Join(t.TempDir(), "ledger.ndjson")
	}
	r, err := receiver.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// post sends one request as the sender would, signed unless a signature is given, and returns the answer.
func post(ctx context.Context, r *receiver.Receiver, id, body, signature string) *httptest.ResponseRecorder {
	if signature == "" {
		signature = webhooks.Sign(secret, []byte(body))
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	request.Header.Set(webhooks.IdempotencyHeader, id)
	request.Header.Set(webhooks.SignatureHeader, signature)
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, request)
	return answer
}

func TestReceiver_JudgesEveryRequest(t *testing.T) {
	t.Parallel()
	r := open(t, receiver.Options{})
	r.Expect("a", []byte(`{"n": 1.0e2}`))
	for _, request := range []struct {
		name, id, body, signature string
		status                    int
	}{
		{"expected", "a", `{"n": 1.0e2}`, "", 200},
		{"again", "a", `{"n": 1.0e2}`, "", 200},
		{"re-encoded", "a", `{"n":100}`, "", 422},
		{"of an unknown delivery", "b", `{"n": 1.0e2}`, "", 422},
		{"signed with another secret", "a", `{"n": 1.0e2}`, webhooks.Sign([]byte("another"), []byte(`{"n": 1.0e2}`)), 401},
		{"signed for another body", "a", `{"n": 1.0e2}`, webhooks.Sign(secret, []byte(`{}`)), 401},
	} {
		if answer := post(t.Context(), r, request.id, request.body, request.signature); answer.Code != request.status {
			t.Errorf("%s: answered %d, want %d", request.name, answer.Code, request.status)
		}
	}
	want := receiver.Report{Requests: 6, Accepted: 1, Duplicates: 1, Mismatched: 2, BadSignatures: 2}
	if diff := cmp.Diff(want, r.Report()); diff != "" {
		t.Error(diff)
	}
	if !r.Accepted("a") || r.Accepted("b") {
		t.Error("accepted are not exactly the expected deliveries")
	}
}

func TestReceiver_AlsoChecksTheRequestsThatItFails(t *testing.T) {
	t.Parallel()
	r := open(t, receiver.Options{Faults: receiver.Faults{Unavailable: 1}})
	r.Expect("a", []byte("body"))
	post(t.Context(), r, "a", "body", "")
	post(t.Context(), r, "a", "another body", "")
	post(t.Context(), r, "a", "body", "sha256=00")
	if diff := cmp.Diff(receiver.Report{Requests: 3, Unavailable: 1, Mismatched: 1, BadSignatures: 1}, r.Report()); diff != "" {
		t.Error(diff)
	}
}

func TestReceiver_ThrottlesWithBothFormsOfRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, throttlesWithBothForms)
}

func throttlesWithBothForms(t *testing.T) {
	r := open(t, receiver.Options{Faults: receiver.Faults{Throttled: 1}})
	r.Expect("a", []byte("body"))
	first, second := post(t.Context(), r, "a", "body", ""), post(t.Context(), r, "a", "body", "")
	if first.Code != 429 || first.Header().Get("Retry-After") != "1" {
		t.Errorf("first: %d, Retry-After %q", first.Code, first.Header().Get("Retry-After"))
	}
	date, err := http.ParseTime(second.Header().Get("Retry-After"))
	if ahead := time.Until(date); second.Code != 429 || err != nil || ahead != 2*time.Second {
		t.Errorf("second: %d, Retry-After %q", second.Code, second.Header().Get("Retry-After"))
	}
}

func TestReceiver_LateRequest_IsAcceptedThoughTheSenderHangsUp(t *testing.T) {
	t.Parallel()
	r := open(t, receiver.Options{Faults: receiver.Faults{Late: 1}, Lateness: time.Hour})
	r.Expect("a", []byte("body"))
	server := httptest.NewServer(r)
	defer server.Close()
	client := webhooks.NewClient(2 * time.Second) // the request has to come first, on any machine
	defer client.CloseIdleConnections()
	sender := webhooks.Sender{Client: client, Secret: secret, Endpoints: func(string) (string, error) { return server.URL, nil }}
	delivery := webhooks.Delivery{ID: "a", Event: "push", Payload: "body"}
	if err := sender.Deliver(t.Context(), &runlane.Attempt{}, delivery); !errors.Is(err, webhooks.ErrNotDelivered) {
		t.Errorf("the sender got %v", err)
	}
	if diff := cmp.Diff(receiver.Report{Requests: 1, Accepted: 1, Late: 1}, r.Report()); diff != "" {
		t.Error(diff)
	}
}

func TestFaults_SharesAreKeptAndASeedIsReproducible(t *testing.T) {
	t.Parallel()
	const requests = 20_000
	tell := func(seed uint64) (story []string, counts map[string]int) {
		counts = map[string]int{}
		for n := range requests {
			verdict, late := receiver.DefaultFaults.Decide(seed, fmt.Sprint("delivery-", n/4), n%4+1)
			fate := fmt.Sprint(verdict, " ", late)
			story, counts[fate] = append(story, fate), counts[fate]+1
		}
		return story, counts
	}
	first, counts := tell(7)
	for fate, share := range map[string]float64{"unavailable false": 0.10, "throttled false": 0.05, " true": 0.05, " false": 0.80} {
		// Four standard deviations of 20,000 draws are at most 1.2 %.
		if got := float64(counts[fate]) / requests; got < share-0.012 || got > share+0.012 {
			t.Errorf("%q: a share of %.4f, want %.2f", fate, got, share)
		}
	}
	if again, _ := tell(7); !cmp.Equal(first, again) {
		t.Error("the same seed tells another story")
	}
	if other, _ := tell(8); cmp.Equal(first, other) {
		t.Error("another seed tells the same story")
	}
}

func TestLedger_SurvivesARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.ndjson")
	options := receiver.Options{Ledger: path, Faults: receiver.Faults{Unavailable: 0.5}, Seed: 3}
	send := func(r *receiver.Receiver) (statuses []int) {
		for n := range 40 {
			id := fmt.Sprint("delivery-", n%8)
			r.Expect(id, []byte(id))
			statuses = append(statuses, post(t.Context(), r, id, id, "").Code)
		}
		return statuses
	}
	uninterrupted := open(t, receiver.Options{Faults: options.Faults, Seed: options.Seed})
	want := append(send(uninterrupted), send(uninterrupted)...)

	first := open(t, options)
	got := send(first)
	before := first.Report()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// A process that is killed while it writes leaves half a line, of a request that it never answered.
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.WriteString(`{"at":"2026-01-01T00:00:00Z","id":"delivery-1","verd`); err != nil {
		t.Fatal(err)
	}
	_ = half.Close()

	second := open(t, options)
	if diff := cmp.Diff(before, second.Report()); diff != "" {
		t.Errorf("report after the restart (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(want, append(got, send(second)...)); diff != "" {
		t.Errorf("answers (-uninterrupted +restarted)\n%s", diff)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(uninterrupted.Report(), open(t, options).Report()); diff != "" {
		t.Errorf("report (-uninterrupted +restarted)\n%s", diff)
	}
}

func TestLedger_Damage_IsATypedError(t *testing.T) {
	t.Parallel()
	damaged := filepath.Join(t.TempDir(), "ledger.ndjson")
	if err := os.WriteFile(damaged, []byte("{}\nnot a ledger\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"damaged line": damaged, "a folder": t.TempDir()} {
		_, err := receiver.Open(receiver.Options{Ledger: path})
		if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
