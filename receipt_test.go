package runlane_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

type receiptHost struct{ text json.RawMessage }

func (h *receiptHost) ReportReceipt(text json.RawMessage) { h.text = text }

// Whatever stands in a receipt, it is stored as JSON of a bounded size: outputs keep their end, bodies their beginning.
func TestSetReceipt_IsBounded(t *testing.T) {
	t.Parallel()
	headers := map[string]string{}
	for n := range 40 {
		headers[strings.Repeat("\x00", 200)+string(rune('a'+n))] = strings.Repeat("\x00", 1000)
	}
	for name, r := range map[string]runlane.Receipt{
		"small":   {Target: runlane.ReceiptHTTP, Request: "GET https://example.com", Status: 204},
		"bodies":  {Body: "begin" + strings.Repeat("\x01", 100_000), Status: 200},
		"outputs": {Stdout: strings.Repeat("\xff", 60_000) + "last", Stderr: strings.Repeat("é", 30_000) + "end"},
		"headers": {Headers: headers, Request: strings.Repeat("x", 10_000)},
		"times":   {StartedAt: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		var host receiptHost
		runlane.NewAttempt(runlane.Run{}, 3, runlane.AttemptHost{Receipts: &host}).SetReceipt(r)
		var got runlane.Receipt
		if err := json.Unmarshal(host.text, &got); err != nil || len(host.text) > runlane.MaxReceiptBytes || got.Attempt != 3 {
			t.Errorf("%s: %d bytes of attempt %d: %v", name, len(host.text), got.Attempt, err)
		}
		whole := len(r.Body)+len(r.Stdout) < runlane.MaxReceiptBytes
		if got.Cut == whole || !strings.HasPrefix(got.Body, r.Body[:min(5, len(r.Body))]) ||
			!strings.HasSuffix(got.Stdout, r.Stdout[max(0, len(r.Stdout)-4):]) ||
			!strings.HasSuffix(got.Stderr, r.Stderr[max(0, len(r.Stderr)-3):]) {
			t.Errorf("%s: cut %t: %.20q, %.20q", name, got.Cut, got.Body, got.Stdout)
		}
	}
	(&runlane.Attempt{}).SetReceipt(runlane.Receipt{}) // nothing keeps it
}
