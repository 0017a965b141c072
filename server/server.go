package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Options of [New] and [Serve]. The zero value serves only this machine: requests over loopback, for a loopback host,
// without headers of a proxy. nil means the zero value.
type Options struct {
	// Access authenticates every request except health checks; it is called concurrently. nil gives callers on this
	// machine all scopes. See [TokenAccess] and [ProxyAccess].
	Access func(*http.Request) (Access, error)
	// HidePayloads removes payloads, outputs and results of steps from every answer, whatever [ScopePayloads] allows.
	// Routes for nothing but these answer 403.
	HidePayloads bool
	// Hosts are the host names, without ports, that requests may use, against DNS rebinding. nil means loopback names
	// if Access is nil, otherwise any.
	Hosts []string
	// Logger logs each change with its actor, and each request that failed here. nil means slog.Default().
	Logger *slog.Logger
	// Metrics counts requests and is shown at /metrics. nil means that /metrics shows only requests and the state of
	// the queues.
	Metrics *Metrics
	// Mounts adds handlers by exact path, such as "/mcp". Host, origin and authentication are checked for them, too,
	// but not scopes. Each is built with the handler that New returns, and calls the API through it with its caller's
	// headers and address. The server's own paths cannot be mounted.
	Mounts map[string]func(api http.Handler) http.Handler
	// Prefix is the path where the handler is mounted, like "/runlane". "" means the root.
	Prefix string
	// Root serves paths that the server does not have, with the prefix removed: a console. It never gets /v1 and the
	// server's other paths, requests for JSON, or changes without a browser's headers; those get problems. From other
	// sites only followed links reach it. Each request has a [Visit], even for unknown callers, and a context of
	// MaxTimeout. nil means 404.
	Root http.Handler
}

// Limits of requests and answers. They are constant, since each is far above the need.
const (
	// MaxBody limits the body of a request in bytes, except for triggers.
	MaxBody = 64 << 10
	// MaxTriggerBody limits the body of a trigger: the payload and everything else.
	MaxTriggerBody = runlane.MaxPayloadBytes + 1<<20
	// MaxBatchBody limits the body of a batch of triggers.
	MaxBatchBody = 32 << 20
	// MaxBatch limits the runs of one batch.
	MaxBatch = 10_000
	// DefaultTimeout limits a request without the header Request-Timeout.
	DefaultTimeout = 30 * time.Second
	// MaxTimeout is the longest time that the header may request.
	MaxTimeout = time.Minute
	// MaxWait is the longest wait of a request for the end of a run.
	MaxWait = 20 * time.Second
)

type api struct {
	rt      *core.Runtime
	access  func(*http.Request) (Access, error)
	hidden  bool
	hosts   []string // nil: any
	logger  *slog.Logger
	prefix  string
	root    http.Handler // nil: none
	mux     *http.ServeMux
	logins  *logins
	catalog catalog
	openAPI []byte
	page    []byte // of the description, for people
	metrics *Metrics
	mounts  map[string]http.Handler
	gauges  gauges
	streams atomic.Int64    // open now
	polls   atomic.Int64    // claims waiting now
	ending  <-chan struct{} // when it is closed, streams end; nil means never
	ready   readiness
}

// New returns the handler of a runtime. It needs no close: requests end with their contexts. Invalid options are
// runlane.ErrConfigurationInvalid. The handler is safe for concurrent use.
func New(rt *core.Runtime, options *Options) (http.Handler, error) {
	a, err := newAPI(rt, options)
	if err != nil {
		return nil, err
	}
	return a.guarded(), nil
}

// OpenAPI returns the description that a handler with this prefix serves at /openapi.json. It depends only on this
// module's version.
func OpenAPI(prefix string) ([]byte, error) { return describe(operations(), prefix).text() }

func newAPI(rt *core.Runtime, options *Options) (*api, error) {
	if options == nil {
		options = &Options{}
	}
	a := &api{
		rt:      rt,
		access:  options.Access,
		hidden:  options.HidePayloads,
		hosts:   options.Hosts,
		logger:  options.Logger,
		prefix:  options.Prefix,
		root:    options.Root,
		logins:  newLogins(time.Now),
		metrics: options.Metrics,
	}
	if a.metrics == nil {
		a.metrics = &Metrics{}
	}
	if a.logger == nil {
		a.logger = slog.Default()
	}
	if rt == nil {
		return nil, invalid("the server needs a runtime", "pass what core.Open returns")
	}
	if a.prefix != "" && (!strings.HasPrefix(a.prefix, "/") || strings.HasSuffix(a.prefix, "/")) {
		return nil, invalid("the prefix is not a path", `begin it with "/", and do not end it so, like "/runlane"`)
	}
	if a.access == nil {
		a.access = onThisMachine
		if a.hosts == nil {
			a.hosts = loopbackNames
		}
	}
	a.catalog = catalog{rt: rt, now: time.Now}
	if err := a.mount(); err != nil {
		return nil, err
	}
	return a, a.mountMore(options.Mounts)
}

func (a *api) mountMore(more map[string]func(api http.Handler) http.Handler) error {
	a.mounts = map[string]http.Handler{}
	for path, made := range more {
		_, taken := a.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
		if len(path) < 2 || path[0] != '/' || taken != "" || made == nil {
			return invalid("nothing can be mounted at \""+clip(path)+"\"", "choose a path like /mcp")
		}
		a.mounts[path] = made(a.guarded())
	}
	return nil
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}

func (a *api) mount() (err error) {
	a.mux = http.NewServeMux()
	table := operations()
	described := describe(table, a.prefix)
	if a.openAPI, err = described.text(); err != nil {
		return err
	}
	a.page = render(described, table)
	for i := range table {
		a.mux.Handle(table[i].method+" "+table[i].path, a.handler(&table[i]))
	}
	return nil
}

// readiness caches whether the storage answers, so that probes cost at most one read a second.
type readiness struct {
	mu    sync.Mutex // held while reading
	asked atomic.Pointer[asked]
}

type asked struct {
	at  time.Time
	err error
}

// probeTime limits the read of a probe. Its result is cached for probeAge.
const (
	probeTime = 2 * time.Second
	probeAge  = time.Second
)

// readyNow reads a run that does not exist, for one caller at a time. It ignores the caller's context, since the result
// is shared.
func (a *api) readyNow(ctx context.Context) error {
	if last := a.ready.asked.Load(); last != nil && time.Since(last.at) < probeAge {
		return last.err
	}
	a.ready.mu.Lock()
	defer a.ready.mu.Unlock()
	if last := a.ready.asked.Load(); last != nil && time.Since(last.at) < probeAge {
		return last.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	_, err := a.rt.Runs().Get(ctx, "runlane-ready")
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		err = nil
	}
	a.ready.asked.Store(&asked{at: time.Now(), err: err})
	return err
}
