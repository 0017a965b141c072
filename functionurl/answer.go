package functionurl

import (
	"bytes"
	"context"
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"
)

// Streamed makes a Lambda handler of a handler, for a URL with the mode RESPONSE_STREAM: output is sent as it is
// written, up to 200 MB, and events as they happen. A stream ends a second before its invocation; the caller continues
// after the last event that it saw. A program that uses it is built with -tags lambda.norpc.
func Streamed(handler http.Handler) func(
	context.Context, *events.LambdaFunctionURLRequest,
) (*events.LambdaFunctionURLStreamingResponse, error) {
	return func(
		ctx context.Context, event *events.LambdaFunctionURLRequest,
	) (*events.LambdaFunctionURLStreamingResponse, error) {
		e, refused := checkEvent(event)
		if refused != nil {
			return streamedRefusal(ctx, refused)
		}
		return lambdaurl.Wrap(adapt(handler, e))(ctx, e)
	}
}

func streamedRefusal(ctx context.Context, p *problem) (*events.LambdaFunctionURLStreamingResponse, error) {
	return lambdaurl.Wrap(p)(ctx, &events.LambdaFunctionURLRequest{
		RawPath: "/",
		RequestContext: events.LambdaFunctionURLRequestContext{
			DomainName: "localhost",
			HTTP:       events.LambdaFunctionURLRequestContextHTTPDescription{Method: http.MethodGet},
		},
	})
}

const (
	// MaxBuffered is the largest response of [Buffered] in bytes, compressed if it is. Lambda takes 6 MB, of which
	// base64 needs a quarter.
	MaxBuffered = 4 << 20
	// BufferedStream is how long [Buffered] collects events for one response.
	BufferedStream = 10 * time.Second
)

// Buffered makes a Lambda handler of a handler, for a URL with the mode BUFFERED, which responds when the handler is
// done. Instead of a response larger than [MaxBuffered] it sends a problem with the code too_large. It collects events
// for [BufferedStream]; the caller continues after the last one.
func Buffered(handler http.Handler) func(
	context.Context, *events.LambdaFunctionURLRequest,
) (*events.LambdaFunctionURLResponse, error) {
	return func(
		ctx context.Context, event *events.LambdaFunctionURLRequest,
	) (*events.LambdaFunctionURLResponse, error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		b := &buffer{header: http.Header{}, stop: stop}
		e, refused := checkEvent(event)
		if refused != nil {
			refused.ServeHTTP(b, nil)
			return b.response(), nil
		}
		// lambdaurl does the conversion. Its own response arrives after the handler's end and is empty.
		streamed, err := lambdaurl.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			adapt(handler, e).ServeHTTP(b, r)
		}))(ctx, e)
		if err != nil {
			return nil, err
		}
		return b.response(), streamed.Close()
	}
}

type buffer struct {
	header http.Header
	sent   http.Header // header when the status was written
	status int
	body   bytes.Buffer
	large  bool
	stop   context.CancelFunc // ends the request
}

// Header implements http.ResponseWriter.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffer) WriteHeader(status int) {
	if b.status != 0 {
		return
	}
	b.status, b.sent = status, b.header.Clone()
	if kind, _, err := mime.ParseMediaType(b.header.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		time.AfterFunc(BufferedStream, b.stop)
	}
}

// Write implements http.ResponseWriter. It refuses a response that Lambda would not take, and drops it.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if b.large || b.body.Len()+len(p) > MaxBuffered {
		b.large = true
		b.body.Reset()
		return 0, http.ErrContentLength
	}
	return b.body.Write(p)
}

func (b *buffer) response() *events.LambdaFunctionURLResponse {
	b.WriteHeader(http.StatusOK)
	body, encoded := b.encoded()
	if b.large {
		p := refusal(
			http.StatusInsufficientStorage,
			"too_large",
			"the answer is larger than a function URL in a VPC takes",
			"ask for less, as with a smaller limit, or with Accept-Encoding: zstd, gzip",
		)
		body, encoded = string(p.text()), false
		b.status, b.sent = p.Status, http.Header{"Content-Type": {problemType}, "Cache-Control": {"no-store"}}
	}
	response := &events.LambdaFunctionURLResponse{
		StatusCode:      b.status,
		Headers:         map[string]string{},
		Body:            body,
		IsBase64Encoded: encoded,
		Cookies:         b.sent.Values("Set-Cookie"),
	}
	for name, values := range b.sent {
		if name != "Set-Cookie" {
			response.Headers[name] = strings.Join(values, ",")
		}
	}
	return response
}

// maxPlain is the longest text that is sent without base64: JSON may need six bytes for one.
const maxPlain = 512 << 10

// encoded returns the body for JSON: short text unchanged, anything else in base64.
func (b *buffer) encoded() (body string, base64Encoded bool) {
	if b.body.Len() <= maxPlain && utf8.Valid(b.body.Bytes()) {
		return b.body.String(), false
	}
	return base64.StdEncoding.EncodeToString(b.body.Bytes()), true
}
