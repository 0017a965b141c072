package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/outbound"
	"github.com/runlane/runlane-go/internal/shown"
)

// delivery is the payload of a run that delivers an end. It names the run but has no body, so that callers can repeat a
// true end, but not invent one.
type delivery struct {
	Webhook string        `json:"webhook"`
	Run     runlane.RunID `json:"run"`
	Created time.Time     `json:"created"` // of the run: distinguishes it from a removed run with the same ID
}

// key is the same for the same end in every process.
func (d *delivery) key() string {
	return d.Webhook + ":" + strconv.FormatInt(d.Created.UnixMilli(), 10) + ":" + string(d.Run)
}

const (
	secretPrefix = "whsec_"
	// maxWebhookAnswer is how much of an answer is read, to reuse its connection.
	maxWebhookAnswer = 16 << 10
)

func parsedSecrets(secrets []string) (keys [][]byte, err error) {
	if n := len(secrets); n < 1 || n > 2 {
		return nil, fmt.Errorf("has %d secrets", n)
	}
	for i, secret := range secrets {
		text, prefixed := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !prefixed || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, fmt.Errorf("has a secret, number %d, that is none of the scheme", i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func signature(keys [][]byte, id, timestamp string, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// parsedURL refuses a URL that cannot be called. Errors do not repeat it, since it may hold a secret.
func (h *Webhook) parsedURL() (*url.URL, error) {
	to, err := url.Parse(h.URL)
	switch {
	case err != nil || to.Host == "" || to.Hostname() == "":
		return nil, errors.New("has a URL that is none")
	case to.Scheme != "https" && (to.Scheme != "http" || !h.Private):
		return nil, errors.New("has a URL that is not https")
	case to.User != nil || to.Fragment != "":
		return nil, errors.New("has a URL with a user or a fragment")
	}
	return to, nil
}

// reach describes the addresses that the webhook may reach.
func (h *hook) reach() outbound.Options {
	return outbound.Options{
		Timeout:     h.Timeout,
		Private:     h.Private,
		TLS:         h.to.Scheme == "https",
		Connections: webhookConcurrency,
	}
}

func (w *Webhooks) deliver(ctx context.Context, a *runlane.Attempt, d delivery) error {
	h, rt := w.hooks[d.Webhook], w.rt.Load()
	run, err := rt.Runs().Get(ctx, d.Run)
	if err != nil && runlane.CodeOf(err) != runlane.ErrRunNotFound {
		return err
	}
	if err != nil || !run.CreatedAt.Equal(d.Created) || !h.wants(run.TaskID, run.Status) {
		text := "the run was removed, or its end is none for webhook "
		return runlane.Permanent(notDelivered(text+quoted(h.Name), nil))
	}
	told := *run
	if !h.Payload {
		told.Payload, told.Output = nil, nil
	}
	body, err := shown.Object("run", shown.Run(&told))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(run.Environment.Name() + ":" + d.key()))
	return h.post(ctx, a, "msg_"+hex.EncodeToString(sum[:16]), body)
}

func (h *hook) post(ctx context.Context, a *runlane.Attempt, id string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.to.String(), bytes.NewReader(body))
	if err != nil {
		return notDelivered("webhook "+quoted(h.Name)+" has no usable URL", nil)
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "runlane-webhook")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", now)
	request.Header.Set("Webhook-Signature", signature(h.keys, id, now, body))
	response, err := h.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // cancelled, shut down or timed out: the runtime knows which
		}
		return h.unanswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxWebhookAnswer)
	a.Logger().DebugContext(ctx, "webhook answered", "webhook", h.Name, "status", response.StatusCode)
	return h.judge(response)
}

// unanswered is the error for a request without an answer. It drops the url.Error, which contains the URL.
func (h *hook) unanswered(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, outbound.ErrAddress) {
		failure := notDelivered("webhook "+quoted(h.Name)+" leads to an address that is refused", nil)
		failure.Hint = "use https and a public address, or allow private ones"
		return failure
	}
	return notDelivered("webhook "+quoted(h.Name)+" did not answer", err)
}

// judge converts an answer to the outcome of the attempt.
func (h *hook) judge(response *http.Response) error {
	status := response.StatusCode
	if status >= 200 && status <= 299 {
		return nil
	}
	text := fmt.Sprintf("webhook %s answered %d", quoted(h.Name), status)
	if status >= 300 && status <= 399 {
		text += ": redirects are not followed"
	}
	failure := notDelivered(text, nil)
	failure.Meta = map[string]string{"status": strconv.Itoa(status)}
	if status == http.StatusGone {
		failure.Code, failure.Retryable = ErrWebhookGone, false
		failure.Hint = "leave the webhook out: its receiver wants no such request again"
		return runlane.Permanent(failure)
	}
	if delay := outbound.RetryAfter(response.Header.Get("Retry-After"), time.Now()); delay > 0 {
		return runlane.RetryAfter(delay, failure)
	}
	return failure
}

func notDelivered(message string, cause error) *runlane.Error {
	return &runlane.Error{Code: ErrWebhookNotDelivered, Message: message, Retryable: true, Cause: cause}
}
