package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// guarded returns the handler with all checks that apply before routing.
func (a *api) guarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setTLS(r)
		defer a.answerPanic(w, r)
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		path, below := strings.CutPrefix(r.URL.Path, a.prefix)
		switch {
		case !below:
			a.fail(r.Context(), w, "none", noRoute())
			return
		case path == "/healthz" || path == "/readyz":
			a.health(w, r, path)
			return
		}
		root := a.forRoot(r)
		if err := a.checkOrigin(r, root); err != nil {
			a.fail(r.Context(), w, "none", err)
			return
		}
		said := r
		if !root || !a.forStrangers(r) {
			said = a.withSession(r)
		}
		caller, err := a.authenticate(said)
		switch p, _ := errors.AsType[*problem](err); {
		case root && err == nil:
			a.serveRoot(w, r, &caller)
			return
		case root && p != nil && p.Status == http.StatusUnauthorized:
			a.serveRoot(w, r, nil)
			return
		}
		if err != nil {
			if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Bearer realm="runlane"`)
			}
			a.fail(r.Context(), w, "none", err)
			return
		}
		if mounted := a.mounts[path]; mounted != nil {
			mounted.ServeHTTP(w, r)
			return
		}
		a.route(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
	})
}

type callerKey struct{}

func callerOf(ctx context.Context) Access {
	caller, _ := ctx.Value(callerKey{}).(Access)
	return caller
}

// answerPanic answers a request that panicked. It passes on http.ErrAbortHandler, which belongs to net/http.
func (a *api) answerPanic(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault)
	}
	a.logger.LogAttrs(r.Context(), slog.LevelError, "runlane: a request panicked", slog.Any("error", fault))
	refusal(
		http.StatusInternalServerError,
		string(runlane.ErrInternal),
		"this is a fault of the server",
		"look at its log").write(w)
}

// route calls the operation of the path. Otherwise the mux decides between an unknown path and an unknown method.
func (a *api) route(w http.ResponseWriter, r *http.Request) {
	inner := http.StripPrefix(a.prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, pattern := a.mux.Handler(r)
		if pattern != "" {
			a.mux.ServeHTTP(w, r)
			return
		}
		said := &statusOnly{header: http.Header{}}
		found.ServeHTTP(said, r)
		if said.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", said.header.Get("Allow"))
			a.fail(r.Context(), w, "none", refusal(http.StatusMethodNotAllowed, codeNoMethod,
				"the path does not take "+r.Method, "it takes "+said.header.Get("Allow")))
			return
		}
		a.fail(r.Context(), w, "none", noRoute())
	}))
	inner.ServeHTTP(w, r)
}

func noRoute() error {
	return refusal(http.StatusNotFound, codeNoRoute, "there is no such path", "see /docs, or /openapi.json")
}

// statusOnly records the header and status of an answer and discards its body.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header { return s.header }

func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

func (s *statusOnly) WriteHeader(status int) { s.status = status }

// checkOrigin refuses requests from pages of other sites: a foreign origin, or a host name that is not ours (DNS
// rebinding). No answer has headers that would let such a page read it.
func (a *api) checkOrigin(r *http.Request, root bool) error {
	host := hostOf(r)
	if a.hosts != nil && !slices.Contains(a.hosts, host) {
		return refusal(http.StatusMisdirectedRequest, codeWrongHost, "the host of the request is not served here",
			"use the address of the server; others are named with --host, or Options.Hosts")
	}
	foreign := refusal(
		http.StatusForbidden,
		codeForeignOrigin,
		"pages of other sites may not call",
		"call from a program, or from the same origin",
	)
	for _, origin := range r.Header.Values("Origin") {
		from, err := url.Parse(origin)
		if err != nil || from.Host != r.Host {
			return foreign
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if foreignSite := site != "" && site != "same-origin" && site != "none"; foreignSite && !(root && linked(r)) {
		return foreign
	}
	return nil
}

func (a *api) authenticate(r *http.Request) (Access, error) {
	tries := r.Header.Get("Authorization") != ""
	if tries && a.logins.locked(r) {
		p := refusal(
			http.StatusTooManyRequests,
			codeTooManyLogins,
			"too many logins from this address have failed",
			"wait, then use a token that is known here",
		)
		p.Retryable, p.retryAfter = true, int(loginEvery.Seconds())
		return Access{}, p
	}
	caller, err := a.access(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		if tries {
			a.logins.failed(r)
		}
		return Access{}, refusal(
			http.StatusUnauthorized,
			codeUnauthenticated,
			"the request does not say who calls",
			`send "Authorization: Bearer TOKEN"`,
		)
	case errors.Is(err, ErrForbidden):
		return Access{}, refusal(
			http.StatusForbidden,
			codeForbidden,
			"the caller is not let in",
			"without tokens only callers on the server's machine are",
		)
	case err != nil:
		return Access{}, err
	}
	if tries {
		a.logins.succeeded(r)
	}
	if caller.Environments != nil && !slices.Contains(caller.Environments, a.rt.Environment()) {
		return Access{}, refusal(
			http.StatusForbidden,
			codeForbidden,
			"the caller may not reach this environment",
			"use a token of the environment "+string(a.rt.Environment()),
		)
	}
	if caller.Actor == (runlane.Actor{}) {
		caller.Actor = runlane.OperatorActor
	}
	return caller, nil
}

// health answers probes, which have no tokens: /healthz if the process serves, /readyz if its storage answers.
func (a *api) health(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refusal(http.StatusMethodNotAllowed, codeNoMethod, "the path does not take "+r.Method, "it takes GET").write(w)
		return
	}
	if path == "/readyz" {
		if err := a.readyNow(r.Context()); err != nil {
			a.fail(r.Context(), w, "ready", refusal(
				http.StatusServiceUnavailable,
				string(runlane.ErrStorageUnavailable),
				"the storage does not answer", `run "doctor"`))
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
