package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/blind"
	"github.com/runlane/runlane-go/internal/shown"
)

type operation struct {
	method, path string
	scope        Scope
	also         Scope  // a second required scope; "" means none
	name         string // like "getRun", unique
	group        string
	summary      string
	text         string
	answers      []answer
	limit        int64 // of the body in bytes; 0 means MaxBody
	takesKey     bool  // reads the header Idempotency-Key
	tagged       bool  // answers have an ETag and obey If-None-Match
	streams      bool  // has no time limit

	reads reflect.Type
	in    *input
	run   func(ctx context.Context, c *call) (*reply, error)
}

type answer struct {
	status int
	kind   string // of docs/json.md; "" for raw bytes
	of     reflect.Type
	list   bool   // a page of objects
	media  string // of raw bytes; "" means application/json
	text   string
}

type call struct {
	*api
	by Access
	r  *http.Request
	w  http.ResponseWriter

	claimed runlane.RunID // the run of the claim in the request
}

// reply is the result of an operation: an object, a page of objects, or raw bytes.
type reply struct {
	status   int // 0 means 200
	kind     string
	value    any
	items    []any
	page     bool
	next     runlane.Cursor
	raw      []byte
	media    string // of raw; "" means application/json
	sequence int64  // of the run, for its ETag; 0 if the answer is not about one run
	run      string // ID of the created or changed run, for the audit log
	flow     string // ID of the flow, for the audit log
	made     bool   // the run is new: send a Location
	streamed bool   // everything was already written
}

func object(kind string, value any) *reply { return &reply{kind: kind, value: value} }

func pageOf[T any](kind string, items []T, next runlane.Cursor, show func(*T) any) *reply {
	r := &reply{kind: kind, page: true, next: next, items: make([]any, len(items))}
	for i := range items {
		r.items[i] = show(&items[i])
	}
	return r
}

func asItIs[T any](v *T) any { return v }

// serve adds the function of a route. The function takes its input as a struct.
func serve[In any](o operation, do func(ctx context.Context, c *call, in *In) (*reply, error)) operation {
	if o.limit == 0 {
		o.limit = MaxBody
	}
	o.reads = reflect.TypeFor[In]()
	o.in = newInput(o.reads, o.limit)
	reader := o.in
	o.run = func(ctx context.Context, c *call) (*reply, error) {
		in := new(In)
		if err := reader.readRequest(c.w, c.r, reflect.ValueOf(in).Elem()); err != nil {
			return nil, err
		}
		return do(ctx, c, in)
	}
	return o
}

func (o *operation) scopes() (scopes []Scope) {
	for _, scope := range []Scope{o.scope, o.also} {
		if scope != "" {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

func (a *api) handler(o *operation) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w, began := &watched{ResponseWriter: out, status: http.StatusOK}, time.Now()
		defer func() { a.metrics.answered(o.name, w.status, time.Since(began)) }()
		c := &call{api: a, by: callerOf(r.Context()), r: r, w: w}
		for _, scope := range o.scopes() {
			if !c.by.has(scope) {
				err := refusal(http.StatusForbidden, codeForbidden,
					"the caller has no scope "+string(scope), "use a token that has it")
				c.audit(r.Context(), o, nil, err)
				a.fail(r.Context(), w, o.name, err)
				return
			}
		}
		if err := o.checkHeaders(r); err != nil {
			a.fail(r.Context(), w, o.name, err)
			return
		}
		ctx, cancel, err := o.withTimeout(r.Context(), r.Header.Get("Request-Timeout"))
		if err != nil {
			a.fail(r.Context(), w, o.name, err)
			return
		}
		defer cancel()
		if a.hides(&c.by) {
			ctx = blind.In(ctx)
		}
		answered, err := o.run(ctx, c)
		c.audit(ctx, o, answered, err)
		if err == nil {
			err = a.answer(w, r, o, answered)
		}
		if err != nil {
			a.fail(ctx, w, o.name, err)
		}
	})
}

type watched struct {
	http.ResponseWriter

	status int
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hides reports whether payloads are hidden from a caller.
func (a *api) hides(by *Access) bool { return a.hidden || !by.has(ScopePayloads) }

func (by *Access) has(scope Scope) bool {
	for _, s := range by.Scopes {
		if s == scope {
			return true
		}
	}
	return false
}

// checkHeaders refuses conditions that the operation does not check, since a caller that sends one relies on it.
func (o *operation) checkHeaders(r *http.Request) error {
	if r.Header.Get("If-Match") != "" {
		return badInput(
			"If-Match is not judged here",
			"changes judge the run's state themselves and answer 409; leave the header out",
		)
	}
	if r.Header.Get("Idempotency-Key") != "" && !o.takesKey && r.Method == http.MethodPost {
		return badInput(
			"Idempotency-Key is not judged here",
			"it is for POST /v1/runs; runs of a batch have idempotencyKey or runId each",
		)
	}
	return nil
}

// withTimeout limits the request's time to Request-Timeout, at most MaxTimeout.
func (o *operation) withTimeout(ctx context.Context, asked string) (context.Context, context.CancelFunc, error) {
	limit := DefaultTimeout
	if asked != "" {
		d, err := runlane.ParseDuration(asked)
		if err != nil || d <= 0 {
			return nil, nil, badInput("the header Request-Timeout is not a duration", "write it like 5s")
		}
		limit = min(d, MaxTimeout)
	}
	if o.streams {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}

// audit logs each attempted change, even without the scope: caller, operation, run, flow or schedule, and outcome.
func (c *call) audit(ctx context.Context, o *operation, answered *reply, err error) {
	if o.scope != ScopeTrigger && o.scope != ScopeOperate && o.scope != ScopeWork {
		return
	}
	attrs := append([]slog.Attr{
		slog.String("actor", nameOfCaller(&c.by, c.r)),
		slog.String("operation", o.name),
	}, c.subject(answered)...)
	level, outcome := slog.LevelInfo, "done"
	if o.scope == ScopeWork { // the run's events name the client
		level = slog.LevelDebug
	}
	if err != nil {
		outcome = problemOf(err).Code
	}
	attrs = append(attrs, slog.String("code", outcome))
	c.logger.LogAttrs(ctx, level, "runlane: a change by HTTP", attrs...)
}

// subject returns the IDs that a change is about, from the path, the claim and the answer.
func (c *call) subject(answered *reply) (attrs []slog.Attr) {
	if answered == nil {
		answered = &reply{}
	}
	named := cmp.Or(nameOf(c.r, "run"), string(c.claimed))
	for _, a := range []struct{ key, id string }{
		{"run_id", cmp.Or(named, answered.run)},
		{"flow", cmp.Or(nameOf(c.r, "flow"), answered.flow)},
		{"schedule", nameOf(c.r, "schedule")},
		{"queue", nameOf(c.r, "queue")},
		{"task", nameOf(c.r, "task")},
	} {
		if a.id != "" {
			attrs = append(attrs, slog.String(a.key, a.id))
		}
	}
	if named == "" || answered.run == "" || answered.run == named {
		return attrs
	}
	key := "changed_run_id"
	if answered.made {
		key = "made_run_id"
	}
	return append(attrs, slog.String(key, answered.run))
}

// nameOf returns an ID from the path, truncated if it is too long to be valid.
func nameOf(r *http.Request, part string) string {
	id := r.PathValue(part)
	if len(id) > runlane.MaxIDBytes {
		return clip(id)
	}
	return id
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, o *operation, answered *reply) error {
	if answered.streamed {
		return nil
	}
	h := w.Header()
	body, err := answered.body()
	if err != nil {
		return err
	}
	if tag := answered.tag(o, body); tag != "" {
		h.Set("ETag", tag)
		if o.tagged && matches(r.Header.Values("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	status := answered.status
	if status == 0 {
		status = http.StatusOK
	}
	if answered.made {
		h.Set("Location", a.prefix+"/v1/runs/"+url.PathEscape(answered.run))
	}
	h.Set("Content-Type", cmp.Or(answered.media, "application/json"))
	a.write(w, r, status, body)
	return nil
}

// tag returns the ETag of an answer: its run's sequence, or a hash. It is weak, since the answer may be compressed.
func (r *reply) tag(o *operation, body []byte) string {
	switch {
	case r.sequence > 0:
		return `W/"` + strconv.FormatInt(r.sequence, 10) + `"`
	case o.tagged:
		sum := sha256.Sum256(body)
		return `W/"` + hex.EncodeToString(sum[:12]) + `"`
	default:
		return ""
	}
}

func matches(given []string, tag string) bool {
	for _, line := range given {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

func (r *reply) body() ([]byte, error) {
	switch {
	case r.raw != nil:
		return r.raw, nil
	case !r.page:
		return shown.Object(r.kind, r.value)
	}
	text := fmt.Appendf(nil, `{"v":%d,"kind":"page","items":[`, shown.Version)
	for i, item := range r.items {
		one, err := shown.Object(r.kind, item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one...)
	}
	text = append(text, ']')
	if r.next != "" {
		next, err := json.Marshal(r.next)
		if err != nil {
			return nil, err
		}
		text = append(append(text, `,"next":`...), next...)
	}
	return append(text, '}'), nil
}

// toAnswer is reserved of a request's time to answer after a wait.
const toAnswer = 100 * time.Millisecond

// until limits a wait so that toAnswer is left of the request's time.
func until(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)-toAnswer)
	}
	return context.WithTimeout(ctx, min(wait, MaxWait))
}
