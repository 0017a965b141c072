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

// Streamed makes a Lambda handler of a handler, for a URL with the mode RESPONSE_STREAM: what is written is sent as it
// is written, up to 200 MB, and events come as they happen. A stream ends a second before its invocation, and its
// caller goes on behind the last event that it saw. A program that uses it is built with -tags lambda.norpc.
func Streamed(handler http.Handler) func(
	context.Context, *events.LambdaFunctionURLRequest,
) (*events.LambdaFunctionURLStreamingResponse, error) {
	return func(
		ctx context.Context, event *events.LambdaFunctionURLRequest,
	) (*events.LambdaFunctionURLStreamingResponse, error) {
		e, refused := judged(event)
		if refused != nil {
			return streamedRefusal(ctx, refused)
		}
		return lambdaurl.Wrap(adapted(handler, e))(ctx, e)
	}
}

// streamedRefusal answers with a problem, whatever the event was.
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
	// MaxBuffered is how many bytes an answer of [Buffered] may have, compressed if it is. Lambda takes 6 MB, of which
	// base64 needs a quarter.
	MaxBuffered = 4 << 20
	// BufferedStream is how long events are collected for an answer of [Buffered].
	BufferedStream = 10 * time.Second
)

// Buffered makes a Lambda handler of a handler, for a URL with the mode BUFFERED, which answers when the handler is
// done. What is larger than [MaxBuffered] is answered with a problem, of the code too_large. Events are collected for
// [BufferedStream], and answered then; their caller goes on behind the last one.
func Buffered(handler http.Handler) func(
	context.Context, *events.LambdaFunctionURLRequest,
) (*events.LambdaFunctionURLResponse, error) {
	return func(
		ctx context.Context, event *events.LambdaFunctionURLRequest,
	) (*events.LambdaFunctionURLResponse, error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		b := &buffer{header: http.Header{}, stop: stop}
		e, refused := judged(event)
		if refused != nil {
			refused.ServeHTTP(b, nil)
			return b.response(), nil
		}
		// The conversion is lambdaurl's. Its own answer comes behind the handler's end, and has nothing in it.
		streamed, err := lambdaurl.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			adapted(handler, e).ServeHTTP(b, r)
		}))(ctx, e)
		if err != nil {
			return nil, err
		}
		return b.response(), streamed.Close()
	}
}

// buffer is the answer so far.
type buffer struct {
	header http.Header
	sent   http.Header // as it was when the status was said
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

// Write implements http.ResponseWriter. It refuses what Lambda would not take, and keeps nothing of it.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if b.large || b.body.Len()+len(p) > MaxBuffered {
		b.large = true
		b.body.Reset()
		return 0, http.ErrContentLength
	}
	return b.body.Write(p)
}

// response is the answer in Lambda's form.
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

// maxPlain is how long a text is sent as it is: JSON makes up to six bytes of one.
const maxPlain = 512 << 10

// encoded is the body as JSON has it: a text that is not long as it is, anything else in base64.
func (b *buffer) encoded() (body string, base64Encoded bool) {
	if b.body.Len() <= maxPlain && utf8.Valid(b.body.Bytes()) {
		return b.body.String(), false
	}
	return base64.StdEncoding.EncodeToString(b.body.Bytes()), true
}
