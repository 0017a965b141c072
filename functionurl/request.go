package functionurl

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
)

// problem is a response of this package in the form of package server's.
type problem struct {
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Hint      string `json:"hint"`
	Retryable bool   `json:"retryable"`
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

func (p *problem) text() []byte {
	text, _ := json.Marshal(p) // strings and numbers always encode
	return text
}

// ServeHTTP implements http.Handler: it answers every request with the problem.
func (p *problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", problemType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.text()) // the caller may be gone
}

const problemType = "application/problem+json"

// checkEvent returns the event for the conversion, with a decoded body and a valid address, or the problem to respond
// with. Callers that IAM did not admit reach no handler, not even a probe.
func checkEvent(event *events.LambdaFunctionURLRequest) (*events.LambdaFunctionURLRequest, *problem) {
	malformed := refusal(
		http.StatusBadRequest,
		string(runlane.ErrValidationFailed),
		"this is no request to a function URL",
		"call the function by its URL",
	)
	if event == nil {
		return nil, malformed
	}
	if _, known := callerOf(event); !known {
		return nil, refusal(
			http.StatusUnauthorized,
			"unauthenticated",
			"the request does not say who calls",
			"give the URL the authentication AWS_IAM, and sign requests for the service lambda",
		)
	}
	e := *event
	if e.IsBase64Encoded {
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return nil, malformed
		}
		e.Body, e.IsBase64Encoded = string(body), false
	}
	if e.RawPath == "" {
		e.RawPath = "/"
	}
	method := e.RequestContext.HTTP.Method
	if !strings.HasPrefix(e.RawPath, "/") || strings.ContainsAny(e.RawPath, "?#") || !token(method) {
		return nil, malformed
	}
	target := "https://" + e.RequestContext.DomainName + e.RawPath + "?" + e.RawQueryString
	if at, err := url.Parse(target); err != nil || at.Host != e.RequestContext.DomainName || at.Fragment != "" {
		return nil, malformed
	}
	return &e, nil
}

func token(text string) bool {
	return text != "" && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// adapt completes lambdaurl's request and recovers panics: here nothing else does that, as net/http would.
func adapt(next http.Handler, e *events.LambdaFunctionURLRequest) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := withReserve(r.Context())
		defer stop()
		out := &answer{ResponseWriter: w, bare: r.Method == http.MethodHead}
		defer out.recoverPanic()
		next.ServeHTTP(out, completeRequest(ctx, r, e))
	})
}

// completeRequest returns the request as net/http would have read it.
func completeRequest(ctx context.Context, r *http.Request, e *events.LambdaFunctionURLRequest) *http.Request {
	r = r.WithContext(ctx)
	r.RequestURI = r.URL.RequestURI()
	r.ContentLength = int64(len(e.Body))
	r.Body = io.NopCloser(strings.NewReader(e.Body))
	if len(e.Body) == 0 {
		r.Body = http.NoBody
	}
	// Lambda has the address without a port. Nobody needs a port, but all parsers expect one.
	r.RemoteAddr = net.JoinHostPort(strings.Trim(e.RequestContext.HTTP.SourceIP, "[]"), "0")
	r.Header.Del("Host")                 // r.Host has it
	r.Header.Del("X-Amz-Security-Token") // of the caller's credentials, which Lambda checked
	if r.Header.Get("Cookie") == "" && len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	return r
}

type answer struct {
	http.ResponseWriter

	begun bool
	bare  bool // for HEAD: without a body
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	if a.bare {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recoverPanic ends the response of a handler that panicked. Package server logs its own panics. The others are
// http.ErrAbortHandler, or come from a handler outside the server.
func (a *answer) recoverPanic() {
	if recover() != nil && !a.begun {
		refusal(
			http.StatusInternalServerError,
			string(runlane.ErrInternal),
			"this is a fault of the server",
			"look at its log",
		).ServeHTTP(a.ResponseWriter, nil)
	}
}
