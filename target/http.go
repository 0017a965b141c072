package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/outbound"
)

type httpEntry struct {
	URL       string            `yaml:"url"`
	Method    string            `yaml:"method"`
	Headers   map[string]string `yaml:"headers"`
	Body      any               `yaml:"body"`
	Private   bool              `yaml:"private"`
	Succeed   codes             `yaml:"succeed"`
	Permanent codes             `yaml:"permanent"`
}

const (
	defaultTimeout = 30 * time.Second
	// requestGrace keeps the attempt's time longer than the request's, whose error says more.
	requestGrace = 5 * time.Second
	// maxResponse is how much of a response is read.
	maxResponse = 64 << 10
)

// successes and permanents apply unless the file says otherwise. Of the client errors some ask to come again, and a
// redirect is one: none is followed.
var (
	successes  = codes{{200, 299}}
	permanents = codes{{300, 407}, {410, 422}, {424, 424}, {426, 428}, {430, 499}, {501, 501}, {505, 505}}
)

// receiptHeaders are kept unless the file names others.
var receiptHeaders = []string{"Content-Type", "Date", "Retry-After", "X-Request-Id"}

// withheld are headers that receipts never have.
var withheld = []string{"Set-Cookie", "Authorization", "Proxy-Authorization", "Www-Authenticate"}

// reserved are headers that belong to the connection.
var reserved = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade"}

var (
	methodForm = regexp.MustCompile(`^[A-Z]{3,20}$`)
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
)

func (e *taskEntry) httpTimeout() time.Duration {
	if e.Timeout == 0 {
		return defaultTimeout
	}
	return time.Duration(e.Timeout)
}

type request struct {
	method    string
	url       template
	headers   map[string]template
	body      any                 // a tree; nil: the payload, or nothing if bare
	escape    func(string) string // for values in a body that is text
	bare      bool
	succeed   codes
	permanent codes
	client    *http.Client
	keeps     []string // headers of responses
	keepsBody bool
	hidden    *hidden
}

// request builds the work of a task from its entry.
func (b *builder) request(e *taskEntry) work {
	r := &request{
		method: e.HTTP.Method, headers: map[string]template{}, succeed: e.HTTP.Succeed, permanent: e.HTTP.Permanent,
		keepsBody: e.Receipt.Body, hidden: &b.hidden,
	}
	if r.succeed == nil {
		r.succeed = successes
	}
	if r.permanent == nil {
		r.permanent = permanents
	}
	if r.method == "" {
		r.method = http.MethodPost
	}
	if !methodForm.MatchString(r.method) || r.method == http.MethodConnect {
		b.fault("use a method like GET or POST", "method %.40q cannot be used", r.method)
	}
	r.bare = e.HTTP.Body == nil && slices.Contains([]string{"GET", "HEAD", "DELETE", "OPTIONS"}, r.method)
	if e.HTTP.Body != nil {
		r.body = b.tree("body", e.HTTP.Body)
	}
	b.requestHeaders(r, e.HTTP.Headers)
	b.textBody(r)
	r.keeps = b.receiptHeaders(&e.Receipt)
	secure := b.requestURL(r, e.HTTP)
	r.client = outbound.NewClient(outbound.Options{Timeout: e.httpTimeout(), Private: e.HTTP.Private, TLS: secure})
	return r.do
}

func (b *builder) requestHeaders(r *request, given map[string]string) {
	for name, value := range given {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if _, twice := r.headers[name]; twice || !headerForm.MatchString(name) || slices.Contains(reserved, name) {
			b.fault("name each header once; the connection's own are set for you", "header %.40q cannot be set", name)
			continue
		}
		r.headers[name] = b.template("header "+name, value)
	}
}

// jsonForm is the beginning of a text that is meant as JSON.
var jsonForm = regexp.MustCompile(`^\s*(\{\s*"|\[\s*["{[])`)

// textBody chooses how values are written in a body that is text with placeholders, so that they stay data.
func (b *builder) textBody(r *request) {
	t, isText := r.body.(template)
	if _, value := t.only(); !isText || value || len(t) < 2 {
		return
	}
	kind := ""
	for _, p := range r.headers["Content-Type"] {
		kind += strings.ToLower(p.text)
	}
	switch {
	case strings.Contains(kind, "json") || jsonForm.MatchString(t[0].text):
		b.fault("write it as YAML, like {id: \"${payload.id}\"}", "the body is JSON as a text, in which a value could be more than a value")
	case strings.Contains(kind, "x-www-form-urlencoded"):
		r.escape = url.QueryEscape
	case strings.Contains(kind, "xml") || strings.Contains(kind, "html"):
		r.escape = html.EscapeString
	}
}

func (b *builder) receiptHeaders(e *receiptEntry) (names []string) {
	if e.Headers == nil {
		return receiptHeaders
	}
	for _, name := range e.Headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if !headerForm.MatchString(name) || slices.Contains(withheld, name) {
			b.fault("leave it out", "receipts cannot have the header %.40q", name)
		}
		names = append(names, name)
	}
	return names
}

const urlHint = "use https://host/path, or with private http:// to a private address; placeholders may be in path and query"

// requestURL checks the URL with its secrets. Faults do not repeat it.
func (b *builder) requestURL(r *request, e *httpEntry) (secure bool) {
	r.url = b.template("url", e.URL)
	sample := ""
	for i, p := range r.url {
		if p.of == "" {
			sample += p.text
			continue
		}
		if _, host, _ := strings.Cut(sample, "://"); i == 1 && !strings.ContainsAny(host, "/?") {
			b.fault(urlHint, "the url has a placeholder in its host")
			return false
		}
		sample += "x"
	}
	to, err := url.Parse(sample)
	switch {
	case err != nil || to.Hostname() == "":
		b.fault(urlHint, "the url is none")
	case to.Scheme != "https" && (to.Scheme != "http" || !e.Private):
		b.fault(urlHint, "the url is not https")
	case to.User != nil || to.Fragment != "" || hasDots(to):
		b.fault("put credentials into a header", "the url has a user, a fragment, or .. in its path")
	default:
		return to.Scheme == "https"
	}
	return false
}

// hasDots reports a path that servers read as another one.
func hasDots(to *url.URL) bool {
	for segment := range strings.SplitSeq(strings.ReplaceAll(to.Path, `\`, "/"), "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// segment reports a placeholder that is a whole segment of the path. Without it servers read another path.
func (r *request) segment(i int) bool {
	behind := r.url[i+1].text
	return strings.HasSuffix(r.url[i-1].text, "/") && (behind == "" && i+2 == len(r.url) || strings.HasPrefix(behind, "/") || strings.HasPrefix(behind, "?"))
}

// address fills in the URL: values are escaped for the path, or behind a ? for the query.
func (r *request) address(v *values) (*url.URL, error) {
	text, inQuery := "", false
	for i := range r.url {
		escape := url.PathEscape
		if inQuery {
			escape = url.QueryEscape
		}
		written, err := r.url[i:i+1].render(v, escape)
		if err != nil {
			return nil, err
		}
		if !inQuery && written == "" && r.url[i].of != "" && r.segment(i) {
			return nil, failed("the payload makes no url: a value in its path is empty", nil)
		}
		text += written
		inQuery = inQuery || strings.Contains(r.url[i].text, "?")
	}
	to, err := url.Parse(text)
	if err != nil || hasDots(to) {
		return nil, failed("the payload makes no url: a value is . or .., or cannot be in one", nil)
	}
	to.RawQuery = strings.ReplaceAll(to.RawQuery, " ", "%20") // of the file or a secret
	return to, nil
}

// content returns the body of a request and its type.
func (r *request) content(v *values, payload json.RawMessage) (body []byte, kind string, err error) {
	switch {
	case r.bare:
		return nil, "", nil
	case r.body == nil:
		return payload, "application/json", nil
	}
	t, text := r.body.(template)
	if _, value := t.only(); text && !value {
		written, err := t.render(v, r.escape)
		return []byte(written), "text/plain; charset=utf-8", err
	}
	value, err := filled(r.body, v)
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(value)
	return body, "application/json", err
}

func (r *request) made(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) (*http.Request, error) {
	v, err := valuesOf(a, payload)
	if err != nil {
		return nil, err
	}
	to, err := r.address(v)
	if err != nil {
		return nil, err
	}
	body, kind, err := r.content(v, payload)
	if err != nil {
		return nil, err
	}
	made, err := http.NewRequestWithContext(ctx, r.method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, failed("the request cannot be made", nil)
	}
	made.Header.Set("User-Agent", "runlane")
	made.Header.Set("Idempotency-Key", a.EffectID()) // the same in all attempts and retries
	if kind != "" {
		made.Header.Set("Content-Type", kind)
	}
	for name, value := range r.headers {
		written, err := value.render(v, nil)
		if err != nil {
			return nil, err
		}
		if strings.ContainsFunc(written, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, failed(fmt.Sprintf("header %s has a control character", name), nil)
		}
		made.Header.Set(name, written)
	}
	return made, nil
}

func (r *request) do(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) error {
	limited, stop := context.WithTimeout(ctx, r.client.Timeout)
	defer stop()
	made, err := r.made(limited, a, payload)
	if err != nil {
		return err
	}
	receipt := runlane.Receipt{
		Target: runlane.ReceiptHTTP, StartedAt: time.Now(),
		Request: r.method + " " + r.hidden.replaced(made.URL.Scheme+"://"+made.URL.Host, false, false),
	}
	// Client.Do has no response where it cannot read the address of a redirect, which is not followed anyway.
	response, err := r.client.Transport.RoundTrip(made)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		r.read(response, &receipt)
	}
	receipt.EndedAt = time.Now()
	a.SetReceipt(receipt)
	switch {
	case err == nil:
		return r.judge(response)
	case ctx.Err() != nil:
		return ctx.Err() // cancelled, shut down or timed out: the runtime knows which
	default:
		return unanswered(err)
	}
}

// read takes what the receipt keeps of a response.
func (r *request) read(response *http.Response, receipt *runlane.Receipt) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	receipt.Status, receipt.BodyBytes = response.StatusCode, int64(len(text))
	receipt.Cut = err != nil || len(text) == maxResponse
	if r.keepsBody {
		receipt.Body = r.hidden.replaced(string(text), false, receipt.Cut)
	}
	receipt.Headers = map[string]string{}
	for _, name := range r.keeps {
		if value := response.Header.Get(name); value != "" {
			receipt.Headers[name] = r.hidden.replaced(value, false, false)
		}
	}
}

// unanswered is the error for a request without a response.
func unanswered(err error) error {
	failure := &runlane.Error{Code: ErrFailed, Message: "the request was not answered", Retryable: true, Cause: err}
	if errors.Is(err, outbound.ErrAddress) {
		failure.Message, failure.Cause = "the url leads to an address that is refused", nil
		failure.Hint = "use https and a public address, or allow private ones with private: true"
	}
	return failure
}

// judge converts a status to the outcome of the attempt.
func (r *request) judge(response *http.Response) error {
	status := response.StatusCode
	if r.succeed.has(status) {
		return nil
	}
	message := fmt.Sprintf("the response has status %d", status)
	if status >= 300 && status <= 399 {
		message += "; redirects are not followed"
	}
	meta := map[string]string{"status": strconv.Itoa(status)}
	if r.permanent.has(status) {
		return failed(message, meta)
	}
	failure := &runlane.Error{Code: ErrFailed, Message: message, Retryable: true, Meta: meta}
	if delay := outbound.RetryAfter(response.Header.Get("Retry-After"), time.Now()); delay > 0 {
		return runlane.RetryAfter(delay, failure)
	}
	return failure
}
