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

// problem is an answer of this package, in the form of those of package server.
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

// text is the problem's JSON.
func (p *problem) text() []byte {
	text, _ := json.Marshal(p) // texts and numbers always encode
	return text
}

// ServeHTTP implements http.Handler: every request is answered with the problem.
func (p *problem) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", problemType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.text()) // a caller that is gone needs no answer
}

const problemType = "application/problem+json"

// judged is an event as the conversion takes it, whatever was sent: with a body that is no base64 any more, and with
// headers, address and path that make a request. The problem is what the event is refused with: whom IAM did not
// let in reaches no handler, nor a probe.
func judged(event *events.LambdaFunctionURLRequest) (*events.LambdaFunctionURLRequest, *problem) {
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

// token reports that a text is a method's name.
func token(text string) bool {
	return text != "" && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// adapted completes what lambdaurl makes of an event, and keeps a panic from ending the process: nothing above recovers
// here, as net/http does.
func adapted(next http.Handler, e *events.LambdaFunctionURLRequest) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := bounded(r.Context())
		defer stop()
		said := &answer{ResponseWriter: w, bare: r.Method == http.MethodHead}
		defer said.recovered()
		next.ServeHTTP(said, completed(ctx, r, e))
	})
}

// completed is the request as net/http would have read it.
func completed(ctx context.Context, r *http.Request, e *events.LambdaFunctionURLRequest) *http.Request {
	r = r.WithContext(ctx)
	r.RequestURI = r.URL.RequestURI()
	r.ContentLength = int64(len(e.Body))
	r.Body = io.NopCloser(strings.NewReader(e.Body))
	if len(e.Body) == 0 {
		r.Body = http.NoBody
	}
	// Lambda says the address without a port. Nothing needs one, but everything expects it.
	r.RemoteAddr = net.JoinHostPort(strings.Trim(e.RequestContext.HTTP.SourceIP, "[]"), "0")
	r.Header.Del("Host")                 // it is in r.Host
	r.Header.Del("X-Amz-Security-Token") // of the caller's credentials, which Lambda checked
	if r.Header.Get("Cookie") == "" && len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	return r
}

// answer remembers whether something was said.
type answer struct {
	http.ResponseWriter

	begun bool
	bare  bool // to HEAD: without a body
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

// recovered ends the answer of a handler that panicked. Package server logs its own panics; what comes here is a
// handler's wish to end the answer, http.ErrAbortHandler, or is of a handler beside it.
func (a *answer) recovered() {
	if recover() != nil && !a.begun {
		refusal(
			http.StatusInternalServerError,
			string(runlane.ErrInternal),
			"this is a fault of the server",
			"look at its log",
		).ServeHTTP(a.ResponseWriter, nil)
	}
}
