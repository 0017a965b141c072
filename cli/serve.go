package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/server"
	"github.com/runlane/runlane-go/server/schema"
)

const serveGrace = 10 * time.Second

type serveFlags struct {
	address, tokens, certificate, key, proxyHeader string
	tasks                                          string
	allow                                          words[string]
	hosts                                          words[string]
	proxies                                        words[string]
	proxyScopes                                    words[server.Scope]
	hide                                           bool
	webhook                                        webhookFlags
}

func (f *serveFlags) define(set *flag.FlagSet) {
	defineAllow(set, &f.allow)
	set.StringVar(&f.address, "listen", "127.0.0.1:0", "ADDRESS to listen on; a free port of this machine unless given")
	set.StringVar(&f.certificate, "certificate", "", "FILE with a certificate chain, for https; --key belongs to it")
	set.BoolVar(&f.hide, "hide-payloads", false, "leave payloads and outputs out of answers")
	set.Var(&f.hosts, "host", "NAMES that requests may have as their host, besides the address")
	set.StringVar(&f.key, "key", "", "FILE with the certificate's key")
	set.Var(&f.proxies, "proxy", "ADDRESSES of proxies that log callers in, like 10.0.0.0/8")
	set.StringVar(&f.proxyHeader, "proxy-header", "", "HEADER in which a proxy names the caller")
	set.Var(&f.proxyScopes, "proxy-scopes", "SCOPES of callers that a proxy names; read unless given")
	set.StringVar(&f.tasks, "tasks", "", "FILE that defines tasks which clients execute")
	set.StringVar(&f.tokens, "tokens", "", "FILE with hashes of tokens, as \"token\" writes them")
	f.webhook.define(set)
}

func serveCommand() *command {
	return &command{
		name:  "serve",
		short: "Answer HTTP requests: the API, its description, events",
		local: true,
		long: "Prints its address first. Without tokens and proxies it accepts callers of this machine only. A " +
			"token (\"token\" makes one) comes as \"Authorization: Bearer TOKEN\". Behind a proxy with a login, " +
			"name its addresses and its header. Language models find tools at /mcp, which only read; --allow adds " +
			"others.\n\nThe server executes no runs and does not tick, except with --tasks, whose tasks clients " +
			"execute, and with a webhook, whose deliveries are runs (on a lane in a file or in memory). Each " +
			"change is a line of the log on stderr. Examples: docs/server.md.",
		examples: []string{
			"serve", "serve --lane sqlite:state.db --listen 127.0.0.1:8080",
			"serve --listen 0.0.0.0:8080 --tokens tokens.ndjson", "serve --tasks tasks.json",
			"serve --webhook https://example.com/ --webhook-secret-env SECRET",
		},
		act: func(flags *flag.FlagSet) action {
			var chosen serveFlags
			chosen.define(flags)
			return func(ctx context.Context, s *session, _ []string) error {
				if s.finds && !s.elsewhere {
					if err := s.findDevState(); err != nil {
						return err
					}
				}
				return s.serve(ctx, &chosen)
			}
		},
	}
}

type serving struct {
	URL         string              `json:"url"`
	Lane        string              `json:"lane"`
	Environment runlane.Environment `json:"environment"`
	PID         int                 `json:"pid"`
}

func (s *session) serve(ctx context.Context, chosen *serveFlags) error {
	options, err := chosen.options(s)
	if err != nil {
		return err
	}
	if err := s.mountMCP(options, chosen.allow); err != nil {
		return err
	}
	options.Metrics = &server.Metrics{}
	tasks, err := s.readTasks(chosen.tasks)
	if err != nil {
		return err
	}
	hooks, err := chosen.webhook.webhooks(s)
	if err != nil {
		return err
	}
	around := host.Host{Metrics: options.Metrics, Tasks: tasks}
	if hooks != nil {
		around.Handlers = hooks.Handlers()
	}
	s.makesFile = tasks != nil || hooks != nil // like a worker
	rt, err := s.rt(host.With(ctx, around))
	if err != nil {
		return err
	}
	// Read once, so that a server that could answer nothing does not start.
	if _, err := rt.Runs().Get(ctx, "runlane-serve"); err != nil && !errors.Is(err, runlane.ErrRunNotFound) {
		return err
	}
	if hooks != nil {
		if err := hooks.Begin(ctx, rt); err != nil {
			return err
		}
	}
	options.Logger = s.changes(ctx)
	options.Root = console.New(rt, &console.Options{Logger: options.Logger})
	listener, url, err := chosen.open(ctx, s, options)
	if err != nil {
		return err
	}
	if s.json {
		err = s.emit("serve", &serving{
			URL:         url,
			Lane:        rt.Lane().Name,
			Environment: rt.Environment(),
			PID:         os.Getpid(),
		})
	} else {
		s.line("listening on %s", url)
	}
	if err = errors.Join(err, s.results.Flush()); err != nil {
		return errors.Join(err, listener.Close())
	}
	return backgroundWork(rt, tasks, hooks).with(ctx, func(ctx context.Context) error {
		return server.Serve(ctx, listener, rt, options, serveGrace)
	})
}

// changes returns the logger for changes through a server. It is the only record of the actor for schedules, keys and
// removed runs, so it writes to stderr if the program's own log omits them.
func (s *session) changes(ctx context.Context) *slog.Logger {
	if log := slog.Default(); s.stderr == os.Stderr && log.Enabled(ctx, slog.LevelInfo) {
		return log
	}
	return slog.New(slog.NewTextHandler(s.stderr, nil))
}

// readTasks reads the file of tasks, or returns nil if there is none.
func (s *session) readTasks(file string) ([]core.ClientTask, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		return nil, usagef("name a file that defines tasks; docs/workers.md has one", "--tasks: %v", err)
	}
	return server.ReadTasks(text, schema.Compile)
}

// serveBeside serves during a dev session. stop ends the server and waits for it.
func (s *session) serveBeside(
	ctx context.Context, rt *core.Runtime, address string, metrics *server.Metrics,
) (url string, stop func(), err error) {
	options := &server.Options{Metrics: metrics, Logger: s.changes(ctx)}
	if err := s.mountMCP(options, nil); err != nil {
		return "", nil, err
	}
	chosen := &serveFlags{address: address}
	listener, url, err := chosen.open(ctx, s, nil)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	options.Root = console.New(rt, &console.Options{Logger: options.Logger})
	go func() { ended <- server.Serve(ctx, listener, rt, options, serveGrace) }() // ends with ctx
	return url, func() {
		cancel()
		if err := <-ended; err != nil {
			s.report(err)
		}
	}, nil
}

// open listens. options decide whether other machines may reach the address.
func (f *serveFlags) open(
	ctx context.Context, s *session, options *server.Options,
) (listener net.Listener, url string, err error) {
	if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", f.address); err != nil {
		return nil, "", usagef(
			"give --listen another address, like 127.0.0.1:8080",
			"%s cannot be listened on: %v",
			quoted(f.address),
			err,
		)
	}
	address := listener.Addr().String()
	if err := server.Reachable(listener.Addr(), options); err != nil {
		return nil, "", errors.Join(
			usagef("listen on 127.0.0.1, or give --tokens, or --proxy with --proxy-header",
				"%s can be reached from other machines, and nothing tells callers apart", address),
			listener.Close(),
		)
	}
	if f.certificate == "" && f.key == "" {
		return listener, "http://" + address, nil
	}
	pair, err := tls.LoadX509KeyPair(s.path(f.certificate), s.path(f.key))
	if err != nil {
		return nil, "", errors.Join(
			usagef("give both, in PEM", "--certificate and --key cannot be used: %v", err), listener.Close(),
		)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return tls.NewListener(listener, config), "https://" + address, nil
}

func (f *serveFlags) options(s *session) (*server.Options, error) {
	o := &server.Options{HidePayloads: f.hide, Hosts: f.hosts}
	var ways []func(*http.Request) (server.Access, error)
	if f.tokens != "" {
		access, err := s.readTokens(f.tokens)
		if err != nil {
			return nil, err
		}
		ways = append(ways, access)
	}
	if len(f.proxies) > 0 || f.proxyHeader != "" {
		access, err := f.proxy()
		if err != nil {
			return nil, err
		}
		ways = append(ways, access)
	}
	if len(ways) > 0 {
		o.Access = firstOf(ways)
	}
	if f.hosts != nil { // in addition to loopback names
		o.Hosts = append([]string{"localhost", "127.0.0.1", "::1"}, f.hosts...)
		if host, _, err := net.SplitHostPort(f.address); err == nil {
			o.Hosts = append(o.Hosts, host)
		}
	}
	return o, nil
}

// firstOf returns the first answer other than ErrUnauthenticated.
func firstOf(ways []func(*http.Request) (server.Access, error)) func(*http.Request) (server.Access, error) {
	return func(r *http.Request) (server.Access, error) {
		for _, way := range ways {
			if access, err := way(r); !errors.Is(err, server.ErrUnauthenticated) {
				return access, err
			}
		}
		return server.Access{}, server.ErrUnauthenticated
	}
}

func (f *serveFlags) proxy() (func(*http.Request) (server.Access, error), error) {
	proxy := server.Proxy{Header: f.proxyHeader, Scopes: f.proxyScopes}
	if proxy.Scopes == nil {
		proxy.Scopes = []server.Scope{server.ScopeRead}
	}
	if err := checkScopes("--proxy-scopes", proxy.Scopes); err != nil {
		return nil, err
	}
	for _, text := range f.proxies {
		prefix, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); err != nil && single == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, usagef("write it like 10.0.0.0/8 or 10.0.0.7; ", "--proxy: %s is not an address", quoted(text))
		}
		proxy.From = append(proxy.From, prefix)
	}
	access, err := server.ProxyAccess(proxy)
	if err != nil {
		return nil, usagef(
			"give --proxy its addresses, and --proxy-header the header that it sets; ",
			"--proxy and --proxy-header need each other",
		)
	}
	return access, nil
}
