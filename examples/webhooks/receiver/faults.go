package receiver

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Faults are shares of requests, each from 0 to 1, together at most 1.
type Faults struct {
	Unavailable float64 // answered with 500, 502 or 503
	Throttled   float64 // answered with 429 and Retry-After
	Late        float64 // accepted, but answered after the sender has given up
}

// DefaultFaults fail a fifth of all requests.
var DefaultFaults = Faults{Unavailable: 0.10, Throttled: 0.05, Late: 0.05}

// Verdict is what the receiver thought of a request.
type Verdict string

// The verdicts.
const (
	// Accepted: the first time that this delivery was accepted.
	Accepted Verdict = "accepted"
	// Duplicate: the delivery had been accepted before.
	Duplicate Verdict = "duplicate"
	// Unavailable: failed on purpose with a 5xx.
	Unavailable Verdict = "unavailable"
	// Throttled: failed on purpose with a 429.
	Throttled Verdict = "throttled"
	// Mismatched: no delivery of this id with this body is expected.
	Mismatched Verdict = "mismatched"
	// BadSignature: the signature is not that of the body.
	BadSignature Verdict = "bad_signature"
)

// Decide says whether a delivery's n-th request, counted from 1, fails on purpose: verdict is "" when it does not, and
// late when only its answer does. That depends on the arguments alone, so that a seed always tells the same story, in
// whatever order requests arrive.
func (f Faults) Decide(seed uint64, id string, n int) (verdict Verdict, late bool) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%d\n%s", seed, n, id))
	draw := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) // uniform in [0, 1)
	switch {
	case draw < f.Unavailable:
		return Unavailable, false
	case draw < f.Unavailable+f.Throttled:
		return Throttled, false
	default:
		return "", draw < f.Unavailable+f.Throttled+f.Late
	}
}

func unavailableStatus(n int) int {
	return []int{http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway}[n%3]
}

// retryAfter uses both forms that the header has. Dates have whole seconds: two ahead are at least one.
func retryAfter(n int, now time.Time) string {
	if n%2 == 0 {
		return now.Add(2 * time.Second).UTC().Format(http.TimeFormat)
	}
	return strconv.Itoa(1)
}
