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

// guarded is the handler: what holds for every request, before the table is asked.
func (a *api) guarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seeTLS(r)
		defer a.recovered(w, r)
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
		if err := a.sameSite(r, root); err != nil {
			a.fail(r.Context(), w, "none", err)
			return
		}
		said := r
		if !root || !a.forStrangers(r) {
			said = a.withSession(r)
		}
		caller, err := a.admit(said)
		switch p, _ := errors.AsType[*problem](err); {
		case root && err == nil:
			a.visited(w, r, &caller)
			return
		case root && p != nil && p.Status == http.StatusUnauthorized:
			a.visited(w, r, nil)
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

// callerOf is who was admitted.
func callerOf(ctx context.Context) Access {
	caller, _ := ctx.Value(callerKey{}).(Access)
	return caller
}

// recovered answers a request whose handling panicked. http.ErrAbortHandler is net/http's own.
func (a *api) recovered(w http.ResponseWriter, r *http.Request) {
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

// route finds the line of the table. Without one the mux says whether the path or only the method is unknown.
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

// statusOnly keeps what a handler says about a request, and not its body.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (s *statusOnly) Header() http.Header { return s.header }

// Write implements http.ResponseWriter.
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (s *statusOnly) WriteHeader(status int) { s.status = status }

// sameSite refuses what a page of another site sends: under a name that leads here (DNS rebinding), or with its own
// origin. No answer has headers that would let such a page read it.
func (a *api) sameSite(r *http.Request, root bool) error {
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

// admit asks who calls.
func (a *api) admit(r *http.Request) (Access, error) {
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

// health answers probes, which have no tokens: whether the process serves, and whether its storage answers.
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
