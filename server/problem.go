package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
)

// problem is an error as in RFC 9457, with the fields of docs/json.md's error. Its type is about:blank: title is the
// status in words, and code identifies the error.
type problem struct {
	Title     string               `json:"title"`
	Status    int                  `json:"status"`
	Detail    string               `json:"detail"`
	Code      string               `json:"code"`
	Conflict  runlane.ConflictKind `json:"conflict,omitempty"`
	Hint      string               `json:"hint,omitempty"`
	Retryable bool                 `json:"retryable"`
	RunID     runlane.RunID        `json:"runId,omitempty"`

	retryAfter int // seconds; 0: no Retry-After header
}

// Codes of problems found before the runtime is called.
const (
	codeUnauthenticated = "unauthenticated"
	codeForbidden       = "forbidden"
	codeWrongHost       = "wrong_host"
	codeForeignOrigin   = "foreign_origin"
	codeTooManyLogins   = "too_many_logins"
	codeTooManyStreams  = "too_many_streams"
	codeNoRoute         = "no_route"
	codeNoMethod        = "no_method"
	codeMediaType       = "media_type"
	codeTooLarge        = "too_large"
	codeDeadline        = "deadline"
)

// statusOf maps the codes of runlane.Error to statuses. Any other code is a fault of the server: 500.
var statusOf = map[runlane.ErrorCode]int{
	runlane.ErrValidationFailed:       http.StatusBadRequest,
	runlane.ErrRunNotFound:            http.StatusNotFound,
	runlane.ErrScheduleNotFound:       http.StatusNotFound,
	runlane.ErrTaskNotFound:           http.StatusNotFound,
	runlane.ErrFlowNotFound:           http.StatusNotFound,
	runlane.ErrQueueNotFound:          http.StatusNotFound,
	runlane.ErrStorageConflict:        http.StatusConflict,
	runlane.ErrRunEnded:               http.StatusConflict,
	runlane.ErrTokenInvalid:           http.StatusForbidden,
	runlane.ErrConfigurationInvalid:   http.StatusUnprocessableEntity,
	runlane.ErrPayloadUnreadable:      http.StatusUnprocessableEntity,
	runlane.ErrCapabilityUnsupported:  http.StatusNotImplemented,
	runlane.ErrStorageUnavailable:     http.StatusServiceUnavailable,
	runlane.ErrOverloaded:             http.StatusServiceUnavailable,
	runlane.ErrTransportUnavailable:   http.StatusServiceUnavailable,
	runlane.ErrTransportPublishFailed: http.StatusServiceUnavailable,
	runlane.ErrOperationCancelled:     http.StatusGatewayTimeout,
}

// problemOf converts an error for the answer. It leaves out causes, since drivers quote requests; they are in the log.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refusal(http.StatusRequestEntityTooLarge, codeTooLarge,
			"the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes",
			"keep large data elsewhere, and its address in the payload")
	}
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e == nil || statusOf[e.Code] == 0 {
		if errors.Is(err, context.DeadlineExceeded) {
			return deadline()
		}
		return refusal(
			http.StatusInternalServerError,
			string(runlane.ErrInternal),
			"this is a fault of the server",
			"look at its log",
		)
	}
	if e.Code == runlane.ErrOperationCancelled {
		return deadline()
	}
	p := refusal(statusOf[e.Code], string(e.Code), worded(e.Message), worded(e.Hint))
	p.Conflict, p.Retryable, p.RunID = e.Conflict, e.Retryable, e.RunID
	if p.Status == http.StatusServiceUnavailable {
		p.Retryable, p.retryAfter = true, max(1, int(math.Ceil(e.RetryAfter.Seconds())))
	}
	return p
}

var goOption = regexp.MustCompile(`\b(?:List|Bulk|Prune|Event|Tick|Trigger)Options\.([A-Z])`)

var wording = strings.NewReplacer(
	"both Delay and RunAt", "both delay and runAt", "clear StrictPayload", "leave out strictPayload",
	"ask Runs().Explain what it waits for", "ask /v1/runs/{run}/explanation what it waits for", "AllRuns", "all",
)

// worded replaces the names of Go options in core's texts by the API's.
func worded(text string) string {
	text = goOption.ReplaceAllStringFunc(text, func(name string) string {
		return strings.ToLower(name[len(name)-1:])
	})
	return wording.Replace(text)
}

func deadline() *problem {
	p := refusal(http.StatusGatewayTimeout, codeDeadline, "the time of the request is over",
		"look whether it was done before you repeat it; the header Request-Timeout gives more time")
	p.Retryable = true
	return p
}

// refused turns core's validation error into 409: the input was already checked, so the run's state is the reason.
func refused(err error) error {
	if runlane.CodeOf(err) != runlane.ErrValidationFailed {
		return err
	}
	p := problemOf(err)
	conflict := *p
	conflict.Status, conflict.Title = http.StatusConflict, http.StatusText(http.StatusConflict)
	return &conflict
}

func refusal(status int, code, detail, hint string) *problem {
	return &problem{
		Title:  http.StatusText(status),
		Status: status,
		Detail: detail,
		Code:   code,
		Hint:   hint,
	}
}

func badInput(detail, hint string) error {
	return refusal(http.StatusBadRequest, string(runlane.ErrValidationFailed), detail, hint)
}

func (p *problem) Error() string { return p.Detail }

func (p *problem) write(w http.ResponseWriter) {
	text, err := json.Marshal(p)
	if err != nil { // cannot happen: texts and numbers always encode
		http.Error(w, http.StatusText(p.Status), p.Status)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // nobody to report to: the caller is gone
}

// fail answers with an error, and logs it if the server or something behind it is at fault.
func (a *api) fail(ctx context.Context, w http.ResponseWriter, operation string, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && p.Status != http.StatusNotImplemented && p.Code != codeDeadline &&
		p.Code != string(runlane.ErrOverloaded) {
		a.logger.LogAttrs(ctx, slog.LevelError, "runlane: a request failed",
			slog.String("operation", operation), slog.String("code", p.Code),
			slog.String("error", strings.TrimPrefix(err.Error(), p.Code+": ")))
	}
	p.write(w)
}
