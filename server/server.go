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

// Options of [New] and [Serve]. The zero value serves callers on this machine only: those that come over loopback, with
// the name of loopback as their host, and with no sign of a proxy. nil means the zero value.
type Options struct {
	// Access says who calls and what they may do; it is called for every request but those of health, by many at once.
	// nil means all scopes for callers on this machine, see above. [TokenAccess] and [ProxyAccess] make others.
	Access func(*http.Request) (Access, error)
	// HidePayloads leaves payloads and outputs of runs, and results of their steps, out of every answer, whatever
	// [ScopePayloads] allows. A route of nothing else is then refused with 403.
	HidePayloads bool
	// Hosts are the names, without ports, that requests may have as their host, which keeps out pages that make their
	// own name lead here. nil means those of loopback where Access is nil, and else any.
	Hosts []string
	// Logger gets a line for each change, with the actor, and for each request that failed here. nil means
	// slog.Default().
	Logger *slog.Logger
	// Metrics is shown at /metrics, and counts the requests. nil means that these alone are counted, beside the state
	// of the queues.
	Metrics *Metrics
	// Mounts are more handlers, by paths like "/mcp", which get the requests to exactly that path. What holds for every
	// request holds for theirs: host, origin and a caller whom Access knows. Scopes they get from the handler that is
	// given to each, which is the one that New returns: they call it in the name of their caller, with the headers and
	// the address of the request. Such a path cannot be one of the server's.
	Mounts map[string]func(api http.Handler) http.Handler
	// Prefix is where the handler is mounted, like "/runlane". "" means at the root.
	Prefix string
	// Root answers the paths that the server does not have, without the prefix: a console. What is below /v1 and the
	// server's other paths is none of its, nor what asks for JSON or sends something as no browser does: such a caller
	// gets a problem. What comes from
	// another site does not reach it, but for links that a person follows. Each request has a [Visit], also one whose
	// caller is not known, and a context that ends after MaxTimeout. nil means none: 404.
	Root http.Handler
}

// Limits of requests and answers. They are no options: each is far above what the API needs.
const (
	// MaxBody bounds the body of a request in bytes, except for triggers.
	MaxBody = 64 << 10
	// MaxTriggerBody bounds the body of a trigger: a payload, and what stands beside it.
	MaxTriggerBody = runlane.MaxPayloadBytes + 1<<20
	// MaxBatchBody bounds the body of a batch of triggers.
	MaxBatchBody = 32 << 20
	// MaxBatch is how many runs one batch makes.
	MaxBatch = 10_000
	// DefaultTimeout is how long a request may take that has no header Request-Timeout.
	DefaultTimeout = 30 * time.Second
	// MaxTimeout is the longest that the header may ask for.
	MaxTimeout = time.Minute
	// MaxWait is how long a request may wait for the end of a run.
	MaxWait = 20 * time.Second
)

// api is the state of one handler.
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
	streams atomic.Int64    // that are open
	polls   atomic.Int64    // claims that wait
	ending  <-chan struct{} // streams end when it is closed; nil: never
	ready   readiness
}

// New returns the handler of a runtime. It starts nothing and has to be closed by nothing: requests end with their
// contexts. Options that cannot be are runlane.ErrConfigurationInvalid. The handler is safe for concurrent use.
func New(rt *core.Runtime, options *Options) (http.Handler, error) {
	a, err := newAPI(rt, options)
	if err != nil {
		return nil, err
	}
	return a.guarded(), nil
}

// OpenAPI is the description that a handler with this prefix serves at /openapi.json, for programs that are built on
// the API. It is the same in every process of this version.
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
		return nil, invalid("the prefix is no path", `begin it with "/", and do not end it so, like "/runlane"`)
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

// mountMore adds what is beside the table.
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

// mount makes a pattern of each line of the table.
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

// readiness remembers whether the storage answers, so that probes cost one read a second at most.
type readiness struct {
	mu    sync.Mutex // held while the storage is asked
	asked atomic.Pointer[asked]
}

type asked struct {
	at  time.Time
	err error
}

// probeTime bounds the read of a probe, and probeAge how long its answer holds.
const (
	probeTime = 2 * time.Second
	probeAge  = time.Second
)

// readyNow asks the storage for a run that does not exist, for one caller at a time: a caller that goes away does not
// spoil the answer of the others.
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
