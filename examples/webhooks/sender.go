package webhooks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// Headers of every request, besides the signature.
const (
	// EventHeader says what happened.
	EventHeader = "X-Webhook-Event"
	// IdempotencyHeader holds the delivery's id. A delivery may arrive more than once; its id never changes.
	IdempotencyHeader = "Idempotency-Key"
)

// RequestTimeout is how long an endpoint has to answer.
const RequestTimeout = 10 * time.Second

// Codes of failed deliveries, beside those of the runtime. Applications add their own like this.
const (
	// ErrNotDelivered: no answer, or one that promises nothing for the next attempt. Retried.
	ErrNotDelivered runlane.ErrorCode = "webhook_not_delivered"
	// ErrRefused: the endpoint does not want this webhook, and never will. Not retried.
	ErrRefused runlane.ErrorCode = "webhook_refused"
)

// Sender has what handlers need. It is safe for concurrent use.
type Sender struct {
	Client    *http.Client // see NewClient
	Endpoints Endpoints
	Secret    []byte // of the signature
}

// NewClient returns the client that a [Sender] wants: it waits no longer than timeout for the whole answer, and takes a
// redirect for an answer, because following one would turn the POST into a GET.
func NewClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Deliver makes one attempt. It may run again although the endpoint has accepted: that is what the idempotency header
// is for.
func (s *Sender) Deliver(ctx context.Context, a *runlane.Attempt, d Delivery) error {
	url, err := s.Endpoints(d.Endpoint)
	if err != nil {
		return err // retried: configuration can be corrected while the run waits
	}
	request, err := s.request(ctx, url, d)
	if err != nil {
		return err
	}
	response, err := s.Client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // cancelled, shut down or timed out: the runtime knows which
		}
		return notDelivered(fmt.Sprintf("endpoint %q did not answer", d.Endpoint), err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // a body that was read lets the connection be used again
	a.Logger().DebugContext(ctx, "webhook answered", "status", response.StatusCode)
	return judge(d, response)
}

func (s *Sender) request(ctx context.Context, url string, d Delivery) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(d.Payload)))
	if err != nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("endpoint %q has no usable URL", d.Endpoint),
			Hint: "correct the endpoint's URL; the run is tried again", Cause: err,
		}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(EventHeader, d.Event)
	request.Header.Set(IdempotencyHeader, d.ID)
	request.Header.Set(SignatureHeader, Sign(s.Secret, []byte(d.Payload)))
	return request, nil
}

// judge turns the endpoint's answer into the attempt's outcome.
func judge(d Delivery, response *http.Response) error {
	status := response.StatusCode
	answered := fmt.Sprintf("endpoint %q answered %d", d.Endpoint, status)
	switch {
	case status >= 200 && status <= 299:
		return nil
	case status >= 400 && status <= 499 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return runlane.Permanent(&runlane.Error{
			Code:    ErrRefused,
			Message: answered,
			Hint:    "the same webhook would be refused again: correct it, or the endpoint",
			Meta:    map[string]string{"status": strconv.Itoa(status)},
		})
	}
	err := notDelivered(answered, nil)
	err.Meta = map[string]string{"status": strconv.Itoa(status)}
	if delay := retryAfter(response.Header.Get("Retry-After"), time.Now()); delay > 0 {
		return runlane.RetryAfter(delay, err)
	}
	return err
}

// notDelivered keeps the cause for logs in this process only: its text holds the URL, and URLs may hold credentials.
func notDelivered(message string, cause error) *runlane.Error {
	return &runlane.Error{Code: ErrNotDelivered, Message: message, Retryable: true, Cause: cause}
}

// maxRetryAfter keeps an endpoint from parking its webhooks for ever.
const maxRetryAfter = time.Hour

// retryAfter reads both forms of the header: seconds, and a date. 0 means that the task's own backoff decides, also
// where the header asks for no delay at all: attempts without a pause would soon use up the budget.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), maxRetryAfter))
}
