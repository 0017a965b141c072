// Package receiver is the other side of the demo and of tests: an endpoint for webhooks that is unreliable on purpose,
// checks every request, and remembers in a file what it accepted.
package receiver

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
)

// maxBodyBytes bounds what is read of one request.
const maxBodyBytes = 8 << 20

// Options of [Open]. Ledger and Secret are required.
type Options struct {
	// Faults is how often the receiver fails. The zero value never does.
	Faults Faults
	// Lateness is how long a late answer takes. It ends early when the sender hangs up.
	Lateness time.Duration
	// Ledger is the path of the file that remembers every request. One that exists is continued.
	Ledger string
	// Secret verifies signatures.
	Secret []byte
	// Seed decides which requests fail: see [Faults].
	Seed uint64
}

// Receiver is an http.Handler, safe for concurrent use. Requests arrive at least once: repeated ones are counted and
// accepted again, as a good receiver does.
type Receiver struct {
	options Options

	mu       sync.Mutex
	ledger   *ledger
	expected map[string]string // delivery id to body hash
	requests map[string]int    // by delivery id
	accepted map[string]bool
	report   Report
}

// Report counts requests. Accepted is the number of different deliveries; Duplicates counts those that came again; Late
// ones were accepted too, but answered too late. Mismatched requests carried an unexpected body.
type Report struct {
	Requests, Accepted, Duplicates, Late, Unavailable, Throttled, Mismatched, BadSignatures int
}

// Open reads the ledger, if there is one, and goes on from there. Close it after the server that it handles requests
// for.
func Open(options Options) (*Receiver, error) {
	r := &Receiver{
		options: options, expected: map[string]string{}, requests: map[string]int{}, accepted: map[string]bool{},
	}
	var err error
	r.ledger, err = openLedger(options.Ledger, r.count)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the ledger.
func (r *Receiver) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger.close()
}

// Expect announces a delivery, before it is sent: its id and body. Everything else is a mismatch.
func (r *Receiver) Expect(id string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[id] = hashOf(body)
}

// Accepted tells whether the delivery has arrived and was accepted.
func (r *Receiver) Accepted(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[id]
}

// Report counts what has arrived until now, also before a restart.
func (r *Receiver) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// ServeHTTP judges one request, writes it to the ledger, then answers: what the sender takes for delivered is in the
// file.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBodyBytes))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest) // half a body says nothing about the sender
		return
	}
	id := request.Header.Get(webhooks.IdempotencyHeader)
	e, err := r.receive(id, body, request.Header.Get(webhooks.SignatureHeader))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if e.Late {
		late := time.NewTimer(r.options.Lateness)
		defer late.Stop()
		select {
		case <-late.C:
		case <-request.Context().Done():
		}
	}
	switch e.Verdict {
	case Accepted, Duplicate:
		w.WriteHeader(http.StatusOK)
	case Unavailable:
		w.WriteHeader(unavailableStatus(e.Request))
	case Throttled:
		w.Header().Set("Retry-After", retryAfter(e.Request, time.Now()))
		w.WriteHeader(http.StatusTooManyRequests)
	case BadSignature:
		w.WriteHeader(http.StatusUnauthorized)
	case Mismatched:
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
}

func (r *Receiver) receive(id string, body []byte, signature string) (Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Entry{At: runlane.UTCMillis(time.Now()), ID: id, SHA256: hashOf(body), Request: r.requests[id] + 1}
	fault, late := r.options.Faults.Decide(r.options.Seed, id, e.Request)
	switch {
	case !webhooks.Verify(r.options.Secret, body, signature):
		e.Verdict = BadSignature
	case r.expected[id] != e.SHA256:
		e.Verdict = Mismatched
	case fault != "":
		e.Verdict = fault
	case r.accepted[id]:
		e.Verdict = Duplicate
	default:
		e.Verdict = Accepted
	}
	e.Late = late && (e.Verdict == Accepted || e.Verdict == Duplicate)
	if err := r.ledger.append(e); err != nil {
		return Entry{}, err
	}
	r.count(e)
	return e, nil
}

func (r *Receiver) count(e Entry) {
	r.requests[e.ID]++
	r.report.Requests++
	switch e.Verdict {
	case Accepted:
		r.accepted[e.ID] = true
		r.report.Accepted++
	case Duplicate:
		r.report.Duplicates++
	case Unavailable:
		r.report.Unavailable++
	case Throttled:
		r.report.Throttled++
	case Mismatched:
		r.report.Mismatched++
	case BadSignature:
		r.report.BadSignatures++
	}
	if e.Late {
		r.report.Late++
	}
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
